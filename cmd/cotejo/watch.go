package main

import (
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"cotejo/machine"
	"cotejo/products/platform"
)

// clock is the time of everything that runs; now hands it out.
var (
	clock = machine.NewClock(machine.SystemClocks())
	now   = clock.Now
)

// duration reads a setting as 2s or 500ms; empty is 0.
func (c configuration) duration(key string) (time.Duration, error) {
	text := c.get(key)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, exitWith(exitConfig, "%s: «%s» no es una duración como 2s o 500ms", key, text)
	}
	return d, nil
}

// byteUnits are what a size may be written in, longest first.
var byteUnits = []struct {
	name string
	size float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// minFree reads the least free space: auto, or bytes as 2GiB, 500MB or 1073741824;
// empty and 0 turn the guard off.
func (c configuration) minFree() (uint64, error) {
	text := strings.TrimSpace(c.get("min_free"))
	switch text {
	case "":
		return 0, nil
	case "auto":
		return machine.MinFreeAuto, nil
	}
	if n, ok := size(text); ok {
		return n, nil
	}
	return 0, exitWith(exitConfig, "min_free: «%s» no es un tamaño como 2GiB o 500MB, ni auto, ni 0", text)
}

// size reads bytes, as 2GiB, 500MB or 1073741824.
func size(text string) (bytes uint64, ok bool) {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(n >= 0) || n*u.size > math.MaxInt64 {
			break
		}
		return uint64(n * u.size), true
	}
	return 0, false
}

// statfs asks the operating system; a test replaces it.
var statfs = machine.Statfs

// newDisk guards the file systems of a data directory: its rooms may lie on
// others than itself.
func newDisk(config configuration, d *dataDir) (*machine.Disk, error) {
	least, err := config.minFree()
	if err != nil {
		return nil, err
	}
	paths := []string{d.path}
	for _, room := range []string{dirAccounts, dirSources} {
		if _, err := os.Stat(d.room(room)); err == nil {
			paths = append(paths, d.room(room))
		}
	}
	return machine.NewDisk(least, statfs, paths...), nil
}

// roomOn asks the disk of a data directory each time it is called, for work that
// keeps files beside a server or without one.
func roomOn(config configuration, d *dataDir) func() error {
	return func() error {
		disk, err := newDisk(config, d)
		if err != nil {
			return err
		}
		disk.Poll()
		return disk.Free()
	}
}

// look polls the machine and logs what turned.
func (s *service) look() {
	if s.disk.Poll() {
		if err := s.disk.Free(); err != nil {
			s.log.Error("disco: no se aceptan consultas con costo hasta que haya espacio; las demás siguen", "error", err.Error())
		} else {
			s.log.Info("disco: hay espacio otra vez")
		}
	}
	if alarm := clock.Alarm(); alarm != s.lastAlarm {
		s.lastAlarm = alarm
		if alarm != "" {
			s.log.Error("reloj", "alarma", alarm)
		} else {
			s.log.Info("reloj: sin alarmas")
		}
	}
}

// conditions are what readiness asks of the machine and of this process. Anyone
// may read them: they name no path and no figure.
func (s *service) conditions() []platform.Condition {
	conditions := []platform.Condition{
		{Name: "cierre", Unmet: func() string {
			if s.closing.Load() {
				return "el servicio se está cerrando"
			}
			return ""
		}},
		{Name: "disco", Unmet: func() string {
			if s.disk.Free() != nil {
				return "queda poco espacio libre, o no se puede saber cuánto"
			}
			return ""
		}},
	}
	if s.turn != nil {
		conditions = append(conditions, platform.Condition{Name: "turno", Unmet: s.turn.unmet})
	}
	return conditions
}

// notices are the machine's alerts in /v1/salud.
func (s *service) notices() (found []platform.Notice) {
	if s.disk.Free() != nil {
		found = append(found, platform.Notice{Kind: "ALMACENAMIENTO_LLENO",
			Message: "Queda poco espacio en el disco, o no se puede saber cuánto: las consultas con costo se responden 503 hasta que lo haya."})
	}
	if s.turn != nil && !s.turn.held() {
		if unmet := s.turn.unmet(); unmet != "" {
			found = append(found, platform.Notice{Kind: "SIN_TURNO", Message: "Las consultas con llave se responden 503: " + unmet + "."})
		}
	}
	if alarm := clock.Alarm(); alarm != "" {
		found = append(found, platform.Notice{Kind: "RELOJ", Message: alarm})
	}
	if s.outbox != nil && s.outbox.Failing() != "" { // why is for the log: it names the server
		found = append(found, platform.Notice{Kind: "CORREO",
			Message: "El último correo no se pudo entregar al servidor de correo y se reintenta: quien se registra puede no recibir todavía su código."})
	}
	return found
}
