// Command pause holds a pod's namespaces open and collects the children that nobody waits for: it is process 1 of every
// pod that shares its process namespace, as the pods of workers do.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT)
	for received := range signals {
		if received != syscall.SIGCHLD {
			os.Exit(0)
		}
		collect()
	}
}

// Signals that arrive together are delivered once, so one may stand for several children.
func collect() {
	for {
		child, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if child <= 0 || err != nil {
			return
		}
	}
}
