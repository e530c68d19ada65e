// The process that holds a pod's namespaces open: it reaps orphans and exits on SIGTERM or SIGINT.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			reaped, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if err != nil || reaped <= 0 {
				break
			}
		}
	}
}
