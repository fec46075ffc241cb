// Command kube is a one-node Kubernetes for tests: every component in one binary.
//
// The name it is called by (a symbolic link), or else the first argument, says which component runs. One binary links
// the libraries that they share once: nine binaries would take several times the space and much longer to link.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	helm "helm.sh/helm/v4/pkg/cmd"
	helmkube "helm.sh/helm/v4/pkg/kube"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var components = map[string]func(){
	"coredns":          runCoreDNS,
	"etcd":             func() { etcdmain.Main(os.Args) },
	"helm":             runHelm,
	"kubectl":          func() { run(kubectl.NewDefaultKubectlCommand()) },
	"network-policies": runNetworkPolicies,
	"volumes":          runVolumes,

	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(controllermanager.NewControllerManagerCommand()) },
	"kube-proxy":              func() { run(proxy.NewProxyCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	// A background context, because a process may install the signal handler only once, and the servers do it themselves.
	"kubelet": func() { run(kubelet.NewKubeletCommand(context.Background())) },
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, called := components[name]; !called && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	component, known := components[name]
	if !known {
		fmt.Fprintf(os.Stderr, "kube has no component %q\n", name)
		os.Exit(2)
	}
	os.Args[0] = name
	component()
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

// A plugin has to be imported (above) and named here: the list that CoreDNS ships names only its own choice.
func runCoreDNS() {
	dnsserver.Directives = []string{"bind", "errors", "ready", "cache", "kubernetes"}
	coremain.Run()
}

// What Helm's own main does; a main package cannot be imported.
func runHelm() {
	helmkube.ManagedFieldsManager = "helm"
	command, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
	if err == nil {
		err = command.Execute()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	var failed helm.CommandError
	switch {
	case errors.As(err, &failed):
		os.Exit(failed.ExitCode)
	case err != nil:
		os.Exit(1)
	}
}
