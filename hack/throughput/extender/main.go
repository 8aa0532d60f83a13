// A scheduler extender as most people write it: net/http, encoding/json and client-go. It decides
// nothing, so it shows what an extender costs by being there.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
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
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = 5000, 10000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/filter", func(w http.ResponseWriter, r *http.Request) { filter(w, r, *most) })
	http.HandleFunc("/bind", func(w http.ResponseWriter, r *http.Request) { bind(w, r, client) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, nil))
}

func filter(w http.ResponseWriter, r *http.Request, most int) {
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
