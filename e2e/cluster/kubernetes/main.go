// Every program of a Kubernetes cluster in one binary, so that one build from the Go module proxy
// replaces the images that a machine without a container registry cannot pull. The first argument
// names the program; each still runs as a process of its own. The arguments of the programs, and the
// order in which they start, are not known here: see ../up and ../node.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"coredns":                 coremain.Run,
	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(controllers.NewControllerManagerCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	"kubelet":                 func() { run(kubelet.NewKubeletCommand(context.Background())) },
	"kube-proxy":              func() { run(proxy.NewProxyCommand()) },
	"kubectl":                 func() { run(kubectl.NewDefaultKubectlCommand()) },
}

func run(command *cobra.Command) { os.Exit(cli.Run(command)) }

func main() {
	if len(os.Args) > 1 {
		if program, known := programs[os.Args[1]]; known {
			os.Args = os.Args[1:]
			program()
			return
		}
	}
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(os.Stderr, "usage: kubernetes PROGRAM [ARGUMENTS]\nprograms: %s\n", strings.Join(names, ", "))
	os.Exit(2)
}
