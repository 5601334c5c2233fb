package admin

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/query"
	"cotejo/snapshots"
)

// What stands beside the registro of a record is in no hash of its own: it is
// compared with everything that says the same elsewhere. The time of the day in
// consultado is the one thing that nothing else says.

// acta is what a stored acta says.
type acta struct {
	Conocida json.RawMessage              `json:"conocida"`
	At       string                       `json:"consultado"`
	Engine   string                       `json:"engine_version"`
	ID       string                       `json:"verification_id"`
	SHA256   string                       `json:"registro_sha256"`
	Versions []map[string]json.RawMessage `json:"versiones"`
}

var engineVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)

// readActa refuses what the pipeline would not have written: an acta is
// canonical and has no member that this program does not know.
func readActa(text []byte) (a acta, err error) {
	canonical, err := canon.Transform(text)
	if err != nil {
		return a, err
	}
	if !bytes.Equal(canonical, text) {
		return a, errors.New("no es JSON canónico")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err = dec.Decode(&a)
	return a, err
}

// besideDiffers compares what the ledger keeps beside registro and acta with
// them, and says what differs.
func besideDiffers(r *ledger.Record, h *query.Header, a *acta) string {
	if edition := hex.EncodeToString(r.Edition[:]); edition != h.Edition {
		return fmt.Sprintf("guardado bajo la edición %s; el registro nombra la %s", edition, h.Edition)
	}
	if !strings.HasPrefix(h.Motor, r.Service+"/") {
		return fmt.Sprintf("guardado como %s; el registro es de %s", r.Service, h.Motor)
	}
	service, answered := strings.CutSuffix(r.Code, "_OK")
	if answered && service != r.Service || !answered && r.Centavos > 0 {
		return fmt.Sprintf("%s con código %s por %d centavos", r.Service, r.Code, r.Centavos)
	}
	at, err := time.Parse(time.RFC3339, a.At)
	if err != nil || civil.Timestamp(at) != a.At {
		return fmt.Sprintf("acta: consultado %q no es un momento", a.At)
	}
	if a.Engine != "" && !engineVersion.MatchString(a.Engine) {
		return fmt.Sprintf("acta: engine_version %q no es una versión", a.Engine)
	}
	// The day asked about is not to come; an id is of its day or a later one.
	if day := civil.Of(at); day.Before(h.Fecha) || r.ID.Day < day.Compact() {
		return fmt.Sprintf("acta: consultado %s, con fecha %s y verification_id de %d", a.At, h.Fecha, r.ID.Day)
	}
	return ""
}

// differs compares the versions that the acta names with the manifests of an
// edition and with the registro, and says what differs. A member that the acta
// lacks is not compared. version reads the manifest of a version; past lists by
// source the earlier versions that the question asks, as far as they are known.
func (a *acta) differs(registro []byte, ed *snapshots.EditionManifest, past map[string]*snapshots.Version, version func(id int) (snapshots.Version, error)) string {
	named := map[int]bool{}
	for _, said := range a.Versions {
		id, err := strconv.Atoi(string(said["id"]))
		at := slices.IndexFunc(ed.Sources, func(e snapshots.EditionEntry) bool { return slices.Contains(e.Chain, id) })
		if err != nil || at < 0 {
			return fmt.Sprintf("la versión %s no es de su edición", said["id"])
		}
		entry := &ed.Sources[at]
		if named[id] {
			return fmt.Sprintf("nombra dos veces la versión %d", id)
		}
		named[id] = true
		version, err := version(id)
		if err != nil {
			return err.Error()
		}
		if !bytes.Contains(registro, []byte(version.SHA256)) {
			return fmt.Sprintf("nombra la versión %d y el registro no", id)
		}
		want := map[string]string{
			"source":      entry.Source,
			"sha256":      version.SHA256,
			"descargada":  version.Downloaded,
			"url":         version.URL,
			"obtenida_de": version.Obtained,
		}
		if id == entry.VersionID {
			want["publicada_en_reset"] = entry.PublishedReset
		}
		if version.Published != "" {
			want["ultima_modificacion_servidor"] = version.Published
		}
		for name, raw := range said {
			if name == "id" {
				continue
			}
			manifest, known := want[name]
			var text string
			if err := json.Unmarshal(raw, &text); err != nil || !known || text != manifest {
				return fmt.Sprintf("la versión %d dice %s %s; su manifiesto, %q", id, name, raw, manifest)
			}
		}
	}
	// A registro carries the SHA-256 of each version that was consulted.
	for _, entry := range ed.Sources {
		if bytes.Contains(registro, []byte(entry.SHA256)) && !named[entry.VersionID] {
			return fmt.Sprintf("el registro nombra la versión %d de %s y el acta no", entry.VersionID, entry.Source)
		}
		if p := past[entry.Source]; p != nil && bytes.Contains(registro, []byte(p.SHA256)) && !named[p.ID] {
			return fmt.Sprintf("el registro nombra la versión %d de %s y el acta no", p.ID, entry.Source)
		}
	}
	return ""
}
