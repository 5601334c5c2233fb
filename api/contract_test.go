package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"cotejo/catalog"
	"cotejo/ledger"
	"cotejo/operation"
	"cotejo/products/catalogs"
	"cotejo/products/company"
	"cotejo/products/evidence"
	"cotejo/products/fiscal"
	"cotejo/products/identifiers"
	"cotejo/products/organization"
	"cotejo/products/platform"
	"cotejo/products/registration"
	"cotejo/products/wallet"
)

var update = flag.Bool("update", false, "rewrite api/openapi.yaml and the examples")

const document = "openapi.yaml"

// contract is the committed OpenAPI document.
type contract struct {
	doc     map[string]any
	mu      sync.Mutex // guards what follows
	schemas map[string]*jsonschema.Schema
	c       *jsonschema.Compiler
}

var committed = sync.OnceValue(func() *contract {
	c := &contract{schemas: map[string]*jsonschema.Schema{}, c: jsonschema.NewCompiler()}
	var v any
	if err := yaml.Unmarshal(must(os.ReadFile(document)), &v); err != nil {
		panic(err)
	}
	c.doc = must(jsonschema.UnmarshalJSON(bytes.NewReader(must(json.Marshal(v))))).(map[string]any)
	c.c.DefaultDraft(jsonschema.Draft2020)
	c.c.AssertFormat()
	if err := c.c.AddResource(document, c.doc); err != nil {
		panic(err)
	}
	return c
})

func (c *contract) schema(pointer string) *jsonschema.Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.schemas[pointer]; s != nil {
		return s
	}
	s := must(c.c.Compile(document + "#" + pointer))
	c.schemas[pointer] = s
	return s
}

// at follows member names from the root of the document; nil when there is none.
func (c *contract) at(names ...string) any { return at(c.doc, names...) }

func at(v any, names ...string) any {
	for _, n := range names {
		m, _ := v.(map[string]any)
		v = m[n]
	}
	return v
}

func pointer(names ...string) string {
	var b strings.Builder
	escape := strings.NewReplacer("~", "~0", "/", "~1", "%", "%25", "{", "%7B", "}", "%7D")
	for _, n := range names {
		b.WriteString("/" + escape.Replace(n))
	}
	return b.String()
}

// route finds the path template that a target belongs to, by another way than
// the server's.
func (c *contract) route(target string) string {
	path, _, _ := strings.Cut(target, "?")
	have := strings.Split(path, "/")
	best := ""
	for template := range c.at("paths").(map[string]any) {
		want := strings.Split(template, "/")
		same := slices.EqualFunc(want, have, func(w, h string) bool {
			return w == h || strings.HasPrefix(w, "{") && h != ""
		})
		if same && (best == "" || strings.Count(template, "{") < strings.Count(best, "{")) {
			best = template
		}
	}
	return best
}

// checkContract fails the test when the document does not promise an answer:
// its status, content type, headers and body.
func checkContract(t testing.TB, table operation.Table, method, target string, a answer) {
	t.Helper()
	c := committed()
	lower := strings.ToLower(method)
	if method == "HEAD" {
		lower = "get"
	}
	at := []string{"paths", c.route(target), lower, "responses", strconv.Itoa(a.status)}
	response, _ := c.at(at...).(map[string]any)
	if ref, ok := response["$ref"].(string); ok {
		at = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		response, _ = c.at(at...).(map[string]any)
	}
	// What comes before any operation is known: no route, or no HTTP.
	if response == nil && slices.Contains([]int{400, 404, 405, 408, 429, 431}, a.status) {
		at = []string{"components", "responses", "Error" + strconv.Itoa(a.status)}
		response, _ = c.at(at...).(map[string]any)
	}
	if response == nil {
		t.Fatalf("%s %s: status %d is not declared: %s", method, target, a.status, a.body)
	}
	for name := range a.header {
		if declared, _ := response["headers"].(map[string]any); headerOfOurs(name) && declared[canonical(name)] == nil {
			t.Fatalf("%s %s: %d: header %s is not declared", method, target, a.status, name)
		}
		if schema := c.at("components", "headers", canonical(name), "schema"); headerOfOurs(name) && schema != nil {
			if err := c.schema(pointer("components", "headers", canonical(name), "schema")).Validate(a.header.Get(name)); err != nil {
				t.Fatalf("%s %s: header %s: %v", method, target, name, err)
			}
		}
	}
	contentType := a.header.Get("Content-Type")
	content, _ := response["content"].(map[string]any)
	if content[contentType] == nil {
		t.Fatalf("%s %s: %d: content type %q is not declared", method, target, a.status, contentType)
	}
	if method == "HEAD" {
		if len(a.body) > 0 {
			t.Fatalf("%s %s: has a body", method, target)
		}
		return
	}
	if contentType != "application/json" {
		return
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err != nil {
		t.Fatalf("%s %s: %v: %s", method, target, err, a.body)
	}
	if err := c.schema(pointer(append(at, "content", contentType, "schema")...)).Validate(body); err != nil {
		t.Fatalf("%s %s: %d: %v\n%s", method, target, a.status, err, a.body)
	}
}

func headerOfOurs(name string) bool {
	switch name {
	case "X-Content-Type-Options":
		return false
	case "Retry-After", "Allow", "Ratelimit", "Ratelimit-Policy", "Www-Authenticate", "Idempotent-Replayed":
		return true
	}
	return strings.HasPrefix(name, "X-")
}

// canonical is a header's name as the document writes it.
func canonical(name string) string {
	switch name {
	case "Www-Authenticate":
		return "WWW-Authenticate"
	case "Ratelimit", "Ratelimit-Policy":
		return "RateLimit" + name[len("Ratelimit"):]
	}
	return name
}

// table assembles every operation, for tests that ask nothing.
func table(t *testing.T) operation.Table {
	t.Helper()
	return tableOf(platform.Config{}, organization.Config{Set: catalog.Embedded()}, evidence.Config{}, registration.Config{}, nil)
}

// tableOf is everything the service can do.
func tableOf(about platform.Config, keeps organization.Config, evident evidence.Config, desk registration.Config, book *ledger.Ledger) operation.Table {
	return must(operation.NewTable(company.Operations(evident.Pipeline), evidence.Operations(evident), fiscal.Operations(), identifiers.Operations(), catalogs.Operations(),
		organization.Operations(keeps), wallet.Operations(book, keeps.Now), platform.Operations(about), registration.Operations(desk)))
}

// TestOpenAPIIsCurrent fails when the committed document is not the one that
// the operations give. Rewrite it with make openapi.
func TestOpenAPIIsCurrent(t *testing.T) {
	doc, err := table(t).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	want := must(operation.YAML(doc))
	if *update {
		if err := os.WriteFile(document, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := must(os.ReadFile(document)); !bytes.Equal(got, want) {
		t.Fatalf("api/%s is stale: make openapi", document)
	}
}

// TestOpenAPIIsServed holds that what is served is what is committed.
func TestOpenAPIIsServed(t *testing.T) {
	served := must(operation.YAML(newFixture(t).get("/openapi.json", "").body))
	if !bytes.Equal(served, must(os.ReadFile(document))) {
		t.Fatalf("/openapi.json is not api/%s", document)
	}
}

// TestParity holds that routes, operations and the document are the same set.
func TestParity(t *testing.T) {
	var operations, routes, documented []string
	for _, op := range table(t) {
		operations = append(operations, op.Method+" "+op.Path)
	}
	var walk func(n *node, path string)
	walk = func(n *node, path string) {
		for method, op := range n.ops {
			if method == op.Method {
				routes = append(routes, method+" "+op.Path)
			} else if method != "HEAD" || op.Read == nil || op.Method != "GET" {
				t.Errorf("%s is routed to %s", method, op.ID)
			}
		}
		for segment, child := range n.static {
			walk(child, path+"/"+segment)
		}
		if n.param != nil {
			walk(n.param, path+"/{}")
		}
	}
	walk(newRoutes(table(t), newRouteMetrics(otherRoutes)), "")
	for path, item := range committed().at("paths").(map[string]any) {
		for method := range item.(map[string]any) {
			documented = append(documented, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(operations)
	slices.Sort(routes)
	slices.Sort(documented)
	if !slices.Equal(operations, routes) {
		t.Errorf("operations %v\nroutes %v", operations, routes)
	}
	if !slices.Equal(operations, documented) {
		t.Errorf("operations %v\ndocumented %v", operations, documented)
	}
}
