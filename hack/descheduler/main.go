// Command descheduler answers what upstream's own code does with a policy and a cluster.
//
// It reads one question a line from standard input, and writes one answer a line. A question
// without runs is whether the policy is accepted.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/testing"
	"k8s.io/klog/v2"

	"sigs.k8s.io/descheduler/cmd/descheduler/app/options"
	"sigs.k8s.io/descheduler/pkg/descheduler"
	"sigs.k8s.io/descheduler/pkg/features"
	"sigs.k8s.io/descheduler/pkg/framework/pluginregistry"
)

// A question. Evictions are asked for in each of Runs cycles, each on the same objects.
type question struct {
	Policy  string            `json:"policy"`
	Objects []json.RawMessage `json:"objects"`
	Runs    int               `json:"runs"`
}

// An eviction that a plugin asked for: the pod as namespace/name, and profile/plugin.
type eviction struct {
	Pod string `json:"pod"`
	By  string `json:"by"`
}

type answer struct {
	Error   string       `json:"error,omitempty"`
	Runs    [][]eviction `json:"runs,omitempty"`
	Seconds []float64    `json:"seconds,omitempty"`
}

func main() {
	klog.SetLogger(logr.Discard())
	// On one processor, who yields lets all others come as far as they can: see letInformersSee.
	runtime.GOMAXPROCS(1)
	descheduler.SetupPlugins()
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		var asked question
		if err := in.Decode(&asked); err == io.EOF {
			return
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := out.Encode(reply(asked)); err != nil {
			os.Exit(1)
		}
	}
}

func reply(asked question) answer {
	file, err := os.CreateTemp("", "policy-*.yaml")
	if err != nil {
		return answer{Error: err.Error()}
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString(asked.Policy); err != nil {
		return answer{Error: err.Error()}
	}
	file.Close()
	objects, err := decoded(asked.Objects)
	if err != nil {
		return answer{Error: err.Error()}
	}
	if asked.Runs == 0 {
		ended, end := context.WithCancel(context.Background())
		end() // Plugins are built, and no cycle runs.
		if _, _, err := cycle(ended, file.Name(), objects); err != nil {
			return answer{Error: strings.ReplaceAll(err.Error(), file.Name(), "FILE")}
		}
		return answer{}
	}
	return repeated(asked.Runs, file.Name(), objects)
}

// Runs the cycles at the same time: each mostly waits for its informers.
func repeated(runs int, file string, objects []apiruntime.Object) answer {
	found := answer{Runs: make([][]eviction, runs), Seconds: make([]float64, runs)}
	failures := make([]error, runs)
	var group sync.WaitGroup
	for run := range runs {
		group.Go(func() {
			found.Runs[run], found.Seconds[run], failures[run] = cycle(context.Background(), file, objects)
		})
	}
	group.Wait()
	for _, err := range failures {
		if err != nil {
			return answer{Error: strings.ReplaceAll(err.Error(), file, "FILE")}
		}
	}
	return found
}

func decoded(raw []json.RawMessage) ([]apiruntime.Object, error) {
	objects := make([]apiruntime.Object, 0, len(raw))
	for _, data := range raw {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func cycle(ctx context.Context, file string, objects []apiruntime.Object) ([]eviction, float64, error) {
	copies := make([]apiruntime.Object, 0, len(objects))
	for _, object := range objects {
		copies = append(copies, object.DeepCopyObject())
	}
	client := fake.NewSimpleClientset(copies...)
	evicted := recordEvictions(client)
	loaded, err := descheduler.LoadPolicyConfig(file, client, pluginregistry.PluginRegistry)
	if err != nil {
		return nil, 0, err
	}
	server, err := options.NewDeschedulerServer()
	if err != nil {
		return nil, 0, err
	}
	server.Client, server.EventClient = clientset.Interface(client), fake.NewSimpleClientset()
	server.DefaultFeatureGates = features.DefaultMutableFeatureGate
	server.DisableMetrics = true
	began := time.Now()
	err = descheduler.RunDeschedulerStrategies(ctx, server, loaded, "v1")
	return *evicted, time.Since(began).Seconds(), err
}

// Does what upstream's own dry run does: the pod is gone, and a watch says so.
func recordEvictions(client *fake.Clientset) *[]eviction {
	var lock sync.Mutex
	found := &[]eviction{}
	pods := v1.SchemeGroupVersion.WithResource("pods")
	client.PrependReactor("create", "pods/eviction", func(action testing.Action) (bool, apiruntime.Object, error) {
		asked := action.(testing.CreateActionImpl).GetObject().(*policy.Eviction)
		lock.Lock()
		defer lock.Unlock()
		by := strings.TrimPrefix(asked.Annotations["reason"], "triggered by ")
		by, _, _ = strings.Cut(by, ":")
		err := client.Tracker().Delete(pods, asked.Namespace, asked.Name)
		if err == nil {
			*found = append(*found, eviction{Pod: asked.Namespace + "/" + asked.Name, By: by})
			letInformersSee()
		}
		return true, nil, err
	})
	return found
}

// Returns once the informer has taken the last event of its watch: reflector, queue and indexer are
// three goroutines, each of which becomes able to run as the one before it has run.
func letInformersSee() {
	for range 64 {
		runtime.Gosched()
	}
}
