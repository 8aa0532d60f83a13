// Package upstream runs Kubernetes' own scheduler_perf, with a program beside its kube-scheduler.
package upstream

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	_ "k8s.io/component-base/logs/json/register"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

func TestMain(m *testing.M) {
	if err := perf.InitTests(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func BenchmarkPerfScheduling(b *testing.B) {
	perf.RunBenchmarkPerfScheduling(b, "performance-config.yaml", "reserver", nil, perf.WithPrepareFn(beside))
}

// beside starts the program that $BESIDE names with the path of a kubeconfig, and returns once it
// has written a line. The program ends when its standard input does: with the workload.
func beside(tCtx ktesting.TContext) error {
	program := os.Getenv("BESIDE")
	if program == "" {
		return nil
	}
	kubeconfig := filepath.Join(tCtx.TB().TempDir(), "kubeconfig")
	if err := write(kubeconfig, tCtx.RESTConfig()); err != nil {
		return err
	}
	command := exec.Command(program, kubeconfig)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	tCtx.TB().Cleanup(func() {
		input.Close()
		command.Wait()
	})
	if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		return fmt.Errorf("%s did not start: %w", program, err)
	}
	return nil
}

func write(path string, config *rest.Config) error {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["it"] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		TLSServerName:            config.ServerName,
		CertificateAuthority:     config.CAFile,
		CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos["it"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	kubeconfig.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	kubeconfig.CurrentContext = "it"
	return clientcmd.WriteToFile(*kubeconfig, path)
}
