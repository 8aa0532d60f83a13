// client makes the calls of kube-scheduler: one Filter after the other, and each pod's Bind beside
// the next of them. It prints pods a second, the milliseconds of a Filter call, the connections
// that it opened, and the protocol of the last answer.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

const (
	warm = 100              // pods that are not counted
	rest = time.Millisecond // of a scheduling cycle
	bind = `{"PodName":"web-1","PodNamespace":"default","PodUID":"u","Node":"node-1"}`
)

var (
	opened   atomic.Int64
	protocol atomic.Value
)

func main() {
	url := flag.String("url", "", "of the extender")
	folder := flag.String("tls", "", "folder of ca.crt, client.crt and client.key; plain HTTP without")
	apart := flag.Bool("apart", false, "a client each for Filter and Bind, as two entries have")
	http2 := flag.Bool("http2", false, "offer HTTP/2")
	pods := flag.Int("pods", 400, "to time")
	body := flag.String("body", "", "file of a Filter call")
	flag.Parse()
	call, err := os.ReadFile(*body)
	if err != nil {
		log.Fatal(err)
	}
	filtering := client(*folder, *http2)
	binding := filtering
	if *apart {
		binding = client(*folder, *http2)
	}
	run(*url, filtering, binding, call, warm)
	opened.Store(0)
	took, filter := run(*url, filtering, binding, call, *pods)
	number := float64(*pods)
	fmt.Printf("%.1f %.3f %d %s\n", number/took.Seconds(), filter.Seconds()*1000/number, opened.Load(), protocol.Load())
}

// run returns how long so many pods took, and how much of that their Filter calls.
func run(url string, filtering, binding *http.Client, call []byte, pods int) (time.Duration, time.Duration) {
	var binds sync.WaitGroup
	var filter time.Duration
	began := time.Now()
	for range pods {
		at := time.Now()
		post(filtering, url+"/filter", call)
		filter += time.Since(at)
		time.Sleep(rest)
		binds.Go(func() { post(binding, url+"/bind", []byte(bind)) })
	}
	binds.Wait()
	return time.Since(began), filter
}

// client is like the one of client-go's rest.TransportFor, which kube-scheduler calls extenders with.
func client(folder string, http2 bool) *http.Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			opened.Add(1)
			return dialer.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   http2,
	}
	if folder != "" {
		transport.TLSClientConfig = certificates(folder)
	}
	return &http.Client{Transport: transport}
}

func certificates(folder string) *tls.Config {
	own, err := tls.LoadX509KeyPair(filepath.Join(folder, "client.crt"), filepath.Join(folder, "client.key"))
	if err != nil {
		log.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: pool}
}

func post(client *http.Client, url string, body []byte) {
	response, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		log.Fatal(response.Status, string(answer), err)
	}
	protocol.Store(response.Proto)
}
