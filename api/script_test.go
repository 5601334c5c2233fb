package api

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"cotejo/accounts"
	"cotejo/operation"
	"cotejo/testdata/mirror"
)

// TestScripts runs testdata/*.txt: the contract of the HTTP interface, for
// people to read. Each file starts with an empty service (see newFixture).
//
//	load STAGE [NAME]           ingest a stage of the mirror as sat_69b, or as one of scripted
//	offer NAME TEXT => TEXT     ingest the last stage as one of scripted, with a text replaced
//	quarantine                  offer a page of HTML as sat_69b
//	advance DURATION            let the clock run
//	full, room                  the disk has no room for a record, or has it again
//	clock MOMENT                set the clock (RFC 3339)
//	credit KEY PESOS            package money for the owner of a key
//	credit KEY SERVICE:N        or individual uses
//	limit KEYS ADDRESSES        the limits, in the form of the settings; nobody has used them up
//	from ADDRESS                where requests come from, from here on
//	job NAME STATUS [DETAIL]    how the last run of a scheduled task, now, ended
//	GET|HEAD|… TARGET [KEY]     ask, as one of the fixture's keys
//	with HEADER: VALUE          a header of the next request, before it
//	json TEXT                   the body of the next request, before it
//	send TYPE TEXT              the same, of another type; \n is a line end
//	times N                     ask the next request so often; the last answer counts
//	status == N
//	header NAME == VALUE        header NAME absent      header NAME contains TEXT
//	body PATH == JSON           .a.b.0 walks the answer; PATH . is all of it
//	body PATH absent            body PATH length N
//	body contains TEXT          body lacks TEXT
//	save NAME PATH              later $NAME stands for that text
//	same                        the body is byte for byte the one before it
//	registrar NAME [MAX]        a registration key that makes so many accounts, later a KEY
//	letters N                   so many letters were sent so far
//	letter contains TEXT        the newest letter; also: letter lacks TEXT, letter to ADDRESS
//	code NAME                   later $NAME stands for the code in the newest letter
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, file := range files {
		if filepath.Base(file) == "spec_fields.txt" {
			continue
		}
		ran++
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
	if ran == 0 {
		t.Fatal("no scripts")
	}
}

// credit adds what a script says to the wallet of a key's organization.
func (f *fixture) credit(text string) {
	key, what, _ := strings.Cut(text, " ")
	if service, count, ok := strings.Cut(what, ":"); ok {
		price, _ := operation.PriceOf(service)
		must(f.accounts.CreditUses(f.t.Context(), f.orgs[key].ID, service, int64(must(strconv.Atoi(count))), price.Single, "usos"))
		return
	}
	must(f.accounts.Credit(f.t.Context(), f.orgs[key].ID, int64(must(strconv.Atoi(what)))*100, "paquete"))
}

func runScript(t *testing.T, file string) {
	f := newFixture(t)
	var headers []string
	var last answer
	times := 1
	var before, content []byte
	saved := map[string]string{}
	for n, line := range strings.Split(string(must(os.ReadFile(file))), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		for name, value := range saved {
			line = strings.ReplaceAll(line, "$"+name, value)
		}
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("%s:%d: %s: "+format+"\n%s", append(append([]any{file, n + 1, line}, args...), last.body)...)
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "load":
			stage, name, named := strings.Cut(rest, " ")
			if n := must(strconv.Atoi(stage)); named {
				f.loadScripted(n, name, "", "")
			} else {
				f.loadStage(n)
			}
		case "offer":
			name, change, _ := strings.Cut(rest, " ")
			from, to, _ := strings.Cut(change, " => ")
			f.loadScripted(mirror.Stages-1, name, from, to)
		case "quarantine":
			f.load([]byte("<!DOCTYPE html><html><body>En mantenimiento</body></html>"))
		case "advance":
			f.advance(must(time.ParseDuration(rest)))
		case "full", "room":
			f.full.Store(word == "full")
		case "clock":
			f.advance(must(time.Parse(time.RFC3339, rest)).Sub(f.clock()))
		case "credit":
			f.credit(rest)
		case "limit":
			f.limit(strings.Fields(rest)[0], strings.Fields(rest)[1])
		case "from":
			f.peer = netip.MustParseAddr(rest)
		case "times":
			times = must(strconv.Atoi(rest))
		case "job":
			f.runJob(rest)
		case "with":
			headers = append(headers, rest)
		case "json":
			content = []byte(rest)
		case "send":
			kind, text, _ := strings.Cut(rest, " ")
			headers = append(headers, "Content-Type: "+kind)
			content = []byte(strings.ReplaceAll(text, `\n`, "\n"))
		case "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS":
			target, key, _ := strings.Cut(rest, " ")
			before = last.body
			f.t = t
			for ; times > 0; times-- {
				last = f.sendBody(word, target, content, append(headers, f.keyHeader(key)...)...)
			}
			headers, content, times = nil, nil, 1
		case "status":
			if want := strings.TrimPrefix(rest, "== "); strconv.Itoa(last.status) != want {
				fail("got %d", last.status)
			}
		case "header":
			name, check, _ := strings.Cut(rest, " ")
			got, present := last.header.Get(name), last.header.Values(name) != nil
			switch {
			case check == "absent" && !present:
			case strings.HasPrefix(check, "== ") && got == check[3:]:
			case strings.HasPrefix(check, "contains ") && strings.Contains(got, check[9:]):
			default:
				fail("got %q", got)
			}
		case "body":
			switch {
			case strings.HasPrefix(rest, "contains "):
				if !bytes.Contains(last.body, []byte(rest[9:])) {
					fail("not there")
				}
			case strings.HasPrefix(rest, "lacks "):
				if bytes.Contains(last.body, []byte(rest[6:])) {
					fail("it is there")
				}
			default:
				checkBody(last.body, rest, fail)
			}
		case "save":
			name, path, _ := strings.Cut(rest, " ")
			value, ok := walk(last.body, path)
			if text, isText := value.(string); ok && isText {
				saved[name] = text
			} else {
				fail("no text there")
			}
		case "registrar":
			name, most, _ := strings.Cut(rest, " ")
			spec := accounts.RegistrationKeySpec{Name: name}
			if most != "" {
				spec.Max = must(strconv.Atoi(most))
			}
			f.registrar(name, spec)
		case "letters":
			if got := len(f.sent()); strconv.Itoa(got) != rest {
				fail("%d were sent", got)
			}
		case "letter":
			all := f.sent()
			newest := all[len(all)-1]
			what, text, _ := strings.Cut(rest, " ")
			whole := newest.Subject + "\n" + newest.Text
			if has := strings.Contains(whole, text); what == "contains" && !has || what == "lacks" && has || what == "to" && newest.To != text {
				fail("to %s: %s", newest.To, whole)
			}
		case "code":
			if saved[rest] = f.code(); saved[rest] == "" {
				fail("no code there")
			}
		case "same":
			if !bytes.Equal(last.body, before) {
				fail("differs from %s", before)
			}
		default:
			fail("unknown word")
		}
	}
}

func checkBody(body []byte, rest string, fail func(string, ...any)) {
	path, check, _ := strings.Cut(rest, " ")
	got, ok := walk(body, path)
	switch {
	case check == "absent":
		if ok {
			fail("got %v", got)
		}
	case strings.HasPrefix(check, "length "):
		list, _ := got.([]any)
		if n := must(strconv.Atoi(check[7:])); !ok || len(list) != n {
			fail("got %v", got)
		}
	case strings.HasPrefix(check, "== "):
		var want any
		if err := json.Unmarshal([]byte(check[3:]), &want); err != nil {
			fail("%v", err)
		}
		if !ok || !reflect.DeepEqual(got, want) {
			fail("got %v", got)
		}
	default:
		fail("unknown check")
	}
}

// walk follows .a.b.0 through a JSON text.
func walk(body []byte, path string) (any, bool) {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return nil, false
	}
	for name := range strings.SplitSeq(strings.Trim(path, "."), ".") {
		if name == "" {
			continue
		}
		switch at := v.(type) {
		case map[string]any:
			child, ok := at[name]
			if !ok {
				return nil, false
			}
			v = child
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}
