// A scheduler extender as most people write it: net/http, encoding/json and client-go. It decides
// nothing, so it shows what an extender costs by being there.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	extender "k8s.io/kube-scheduler/extender/v1"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of a user who may bind pods")
	most := flag.Int("answer", 0, "names to answer at most; 0 for all")
	least := flag.Bool("least", false, "do as little as an extender can")
	port := flag.Int("port", 0, "on loopback; 0 for any that is free")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = 5000, 10000
	filter := filterOf(*most)
	if *least {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		filter = leastFilterOf(*most)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/filter", filter)
	http.HandleFunc("/bind", func(w http.ResponseWriter, r *http.Request) { bind(w, r, client) })
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, nil))
}

func filterOf(most int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var args extender.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		names := *args.NodeNames
		if most > 0 && len(names) > most {
			names = names[:most]
		}
		answer(w, extender.ExtenderFilterResult{NodeNames: &names})
	}
}

// leastFilterOf answers the bytes of the first names, and decodes nothing: no extender can do less.
func leastFilterOf(most int) http.HandlerFunc {
	key := []byte(`"NodeNames":[`)
	return func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, max(r.ContentLength, 0))
		if _, err := io.ReadFull(r.Body, body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, names, found := bytes.Cut(body, key)
		if !found {
			http.Error(w, "no NodeNames", http.StatusBadRequest)
			return
		}
		names = names[:max(bytes.IndexByte(names, ']'), 0)]
		end := 0
		for range most {
			next := bytes.IndexByte(names[end:], ',')
			if next < 0 {
				end = len(names) + 1
				break
			}
			end += next + 1
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"NodeNames":[%s]}`, names[:end-1])
	}
}

func bind(w http.ResponseWriter, r *http.Request, client kubernetes.Interface) {
	var args extender.ExtenderBindingArgs
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: args.PodNamespace, Name: args.PodName, UID: args.PodUID},
		Target:     v1.ObjectReference{Kind: "Node", Name: args.Node},
	}
	var result extender.ExtenderBindingResult
	err := client.CoreV1().Pods(args.PodNamespace).Bind(r.Context(), binding, metav1.CreateOptions{})
	if err != nil {
		result.Error = err.Error()
	}
	answer(w, result)
}

func answer(w http.ResponseWriter, result any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(result); err != nil {
		log.Print(err)
	}
}
