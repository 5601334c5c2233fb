package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"cotejo/civil"
	"cotejo/query"
	"cotejo/snapshots"
)

// growthLists are lists with one layout, among which the rows are dealt.
var growthLists = []string{"FIRMES", "EXIGIBLES", "NO_LOCALIZADOS", "SENTENCIAS"}

// measureGrowth compares the processor time of an answer with many and with few rows
// loaded, in the same lists. The rows are given to the catalogue as a reader would:
// no official file is as large.
func measureGrowth(ctx context.Context, h Host, dir string, rows [2]int, n int, report *Report) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var sides [2]*answering
	for i, name := range []string{"pocas", "muchas"} {
		h.Progress("crecimiento: %d filas", rows[i])
		c, err := snapshots.OpenCatalogue(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		listed, err := stageRows(ctx, c, rows[i])
		if err != nil {
			return err
		}
		m, err := c.LatestEdition()
		if err != nil {
			return err
		}
		ed, err := c.OpenEdition(m)
		if err != nil {
			return err
		}
		defer ed.Release()
		asked, err := questions(ed, listed, n)
		if err != nil {
			return err
		}
		if sides[i], err = newAnswering(ed, asked); err != nil {
			return err
		}
	}
	var seconds [2][]float64
	for repeat := range engineRepeats + 1 {
		for i, side := range sides {
			cpu, err := cpuOf(side.all)
			if err != nil {
				return err
			}
			if repeat > 0 { // the first is a warm-up
				seconds[i] = append(seconds[i], cpu/float64(n))
			}
		}
	}
	report.Figures["growth_10m_vs_1m"] = median(ratios(seconds[1], seconds[0]))
	report.Detail["growth"] = map[string]any{
		"measured": "processor time of query.AppendRegistro and the SHA-256 of its bytes with many rows loaded ÷ with few",
		"rows":     rows, "lists": len(growthLists), "rfcs": n, "hits_percent": classifyHits,
		"few_s": seconds[0], "many_s": seconds[1],
	}
	return nil
}

// stageRows publishes lists with so many rows together, one of an RFC each, and
// returns some of the RFCs.
func stageRows(ctx context.Context, c *snapshots.Catalogue, rows int) (listed []string, err error) {
	unlock, err := c.Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	random := rand.New(rand.NewPCG(69, 6))
	when := time.Date(2026, 9, 1, 12, 0, 0, 0, civil.Zone)
	keep := max(rows/censusRows, 1)
	for _, code := range growthLists {
		list := art69List(code)
		if list == nil {
			return nil, fmt.Errorf("no hay una lista %s", code)
		}
		stage, err := c.Stage(list.Schema.Source)
		if err != nil {
			return nil, err
		}
		defer stage.Discard()
		if _, err := stage.Write([]byte(code)); err != nil { // no part in the rows
			return nil, err
		}
		if err := stage.Seal(); err != nil {
			return nil, err
		}
		stage.Begin(list.Schema)
		for i := range rows / len(growthLists) {
			rfc := RandomRFC(random)
			name := "EMPRESA SINTETICA " + strconv.Itoa(i) + " SA DE CV"
			cells := []string{rfc, name, "M", code, "16/03/2019", "CIUDAD DE MEXICO"}
			if err := stage.Add(snapshots.Row{ID: []string{rfc, strconv.Itoa(i)}, Raw: cells, Norm: cells}); err != nil {
				return nil, err
			}
			if i%keep == 0 {
				listed = append(listed, rfc)
			}
			if i%1024 == 0 && ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
		v, err := stage.Accept(snapshots.Origin{URL: "https://ejemplo.mx", Obtained: "archivo:crecimiento", Corte: civil.Of(when), CorteFrom: snapshots.CorteOfOperator, Downloaded: when, Encoding: "utf-8"})
		if err != nil {
			return nil, err
		}
		if _, err := c.Publish(v, when); err != nil {
			return nil, err
		}
	}
	return listed, nil
}

func art69List(code string) *query.Art69List {
	for i := range query.Art69Lists {
		if query.Art69Lists[i].Code == code {
			return &query.Art69Lists[i]
		}
	}
	return nil
}
