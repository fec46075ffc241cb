package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// Enforces NetworkPolicies with kube-router's controller for them, and with none of its others: iptables rules and ip
// sets in the node's forwarding, through which all traffic of pods goes.
func runNetworkPolicies() {
	config := options.NewKubeRouterConfig()
	flags := flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "who to be at the API server")
	flags.StringVar(&config.HostnameOverride, "hostname-override", "", "this node's name")
	flags.StringVar(&config.ClusterIPCIDRs[0], "service-cluster-ip-range", "", "addresses of Services")
	_ = flags.Parse(os.Args[1:]) // ends the process itself
	config.EnableIPv4 = true
	if err := enforceNetworkPolicies(config); err != nil {
		klog.Fatal(err)
	}
}

func enforceNetworkPolicies(config *options.KubeRouterConfig) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	access, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	iptables, sets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		return err
	}
	// It wants to know the node's address: until kubelet has registered the node there is none.
	var controller *netpol.NetworkPolicyController
	for controller == nil {
		var sharedWithOthers sync.Mutex
		controller, err = netpol.NewNetworkPolicyController(
			client, config, pods, policies, namespaces, &sharedWithOthers, iptables, sets)
		if err != nil {
			klog.Infof("not yet: %v", err)
			time.Sleep(200 * time.Millisecond)
		}
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods: controller.PodEventHandler, namespaces: controller.NamespaceEventHandler,
		policies: controller.NetworkPolicyEventHandler,
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	heartbeats := make(chan *healthcheck.ControllerHeartbeat)
	go func() {
		for range heartbeats { // it blocks unless somebody listens
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	controller.Run(heartbeats, ctx.Done(), &running)
	return nil
}
