package api

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The janitor of fasthttp's workers looks once in ten seconds whether it should
// end, and the clock of its Date header never does.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.Cleanup(func(code int) {
			os.RemoveAll(sandboxDir())
			os.Exit(code)
		}))
}
