package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v11/controller"
)

// Gives each claim of the named class a folder of the node: volumes that outlive their pods, as kind's default class has
// them.
func runVolumes() {
	var kubeconfig, class string
	var given folders
	flags := flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	flags.StringVar(&kubeconfig, "kubeconfig", "", "who to be at the API server")
	flags.StringVar(&class, "provisioner", "", "the provisioner that storage classes name")
	flags.StringVar(&given.root, "root", "", "where the folders are")
	_ = flags.Parse(os.Args[1:]) // ends the process itself
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		klog.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		klog.Fatal(err)
	}
	controller.NewProvisionController(
		ctx, client, class, given, controller.LeaderElection(false)).Run(ctx)
}

type folders struct{ root string }

// Anybody may write: the user that a pod runs as is not known yet, and the kubelet sets no owner of such volumes.
func (f folders) Provision(
	_ context.Context, options controller.ProvisionOptions,
) (*core.PersistentVolume, controller.ProvisioningState, error) {
	folder := filepath.Join(f.root, options.PVName)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	if err := os.Chmod(folder, 0o777); err != nil { // whatever the umask is
		return nil, controller.ProvisioningFinished, err
	}
	size := options.PVC.Spec.Resources.Requests[core.ResourceStorage]
	volume := &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: options.PVName},
		Spec: core.PersistentVolumeSpec{
			AccessModes:                   options.PVC.Spec.AccessModes,
			Capacity:                      core.ResourceList{core.ResourceStorage: size},
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			PersistentVolumeSource:        core.PersistentVolumeSource{HostPath: &core.HostPathVolumeSource{Path: folder}},
		},
	}
	return volume, controller.ProvisioningFinished, nil
}

func (f folders) Delete(_ context.Context, volume *core.PersistentVolume) error {
	return os.RemoveAll(filepath.Join(f.root, volume.Name))
}
