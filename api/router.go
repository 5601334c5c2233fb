package api

import (
	"slices"
	"strings"

	"cotejo/operation"
)

// node is one segment of the tree of routes.
type node struct {
	static map[string]*node
	param  *node               // any one segment
	ops    map[string]endpoint // by method; HEAD only where asking is free
	allow  string              // methods, for the header Allow
}

// endpoint is what a method of a route leads to.
type endpoint struct {
	*operation.Operation
	class   operation.Class
	metrics *routeMetrics
}

// maxDepth bounds the segments of a path. The longest route has six.
const maxDepth = 12

// newRoutes makes the tree. What HEAD is answered counts for other.
func newRoutes(table operation.Table, other *routeMetrics) *node {
	root := &node{}
	for _, op := range table {
		n := root
		for _, segment := range strings.Split(op.Path[1:], "/") {
			n = n.child(segment)
		}
		if n.ops == nil {
			n.ops = map[string]endpoint{}
		}
		n.ops[op.Method] = endpoint{op, op.Class(), newRouteMetrics(op.Path, op.Statuses()...)}
		// A verification is charged: HEAD would pay for an answer and drop it.
		if op.Method == "GET" && op.Read != nil {
			n.ops["HEAD"] = endpoint{op, op.Class(), other}
		}
		var methods []string
		for m := range n.ops {
			methods = append(methods, m)
		}
		slices.Sort(methods)
		n.allow = strings.Join(methods, ", ")
	}
	return root
}

func (n *node) child(segment string) *node {
	if segment[0] == '{' {
		if n.param == nil {
			n.param = &node{}
		}
		return n.param
	}
	if n.static == nil {
		n.static = map[string]*node{}
	}
	if n.static[segment] == nil {
		n.static[segment] = &node{}
	}
	return n.static[segment]
}

// find returns the node of a path as it was sent, nil when there is none, and
// appends the segments that stand for parameters. A fixed segment wins over a
// parameter, as long as the rest of the path leads somewhere.
func (n *node) find(segments [][]byte, params [][]byte) (*node, [][]byte) {
	if len(segments) == 0 {
		if n.ops == nil {
			return nil, params
		}
		return n, params
	}
	if next := n.static[string(segments[0])]; next != nil {
		if found, p := next.find(segments[1:], params); found != nil {
			return found, p
		}
	}
	if n.param != nil && len(segments[0]) > 0 {
		return n.param.find(segments[1:], append(params, segments[0]))
	}
	return nil, params
}
