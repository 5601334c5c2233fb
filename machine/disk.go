package machine

import (
	"fmt"
	"sync"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/sys/unix"
)

var (
	diskFree = metrics.NewGauge("cotejo_disk_free_bytes", nil)
	diskFull = metrics.NewGauge("cotejo_disk_full", nil)
)

// Space is what a file system says of itself, in bytes.
type Space struct{ Free, Total uint64 }

// Statfs asks the operating system for what an ordinary user may still write.
func Statfs(path string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Space{}, fmt.Errorf("%s: %w", path, err)
	}
	block := uint64(s.Bsize)
	return Space{s.Bavail * block, s.Blocks * block}, nil
}

const (
	gib = 1 << 30
	// Of MinFreeAuto: at least autoLeast bytes, at most autoMost, else a twentieth.
	autoLeast = 1 * gib
	autoMost  = 16 * gib
)

// MinFreeAuto, as a least free space, is 5 % of the file system, but no less than
// 1 GiB and no more than 16 GiB.
const MinFreeAuto = ^uint64(0)

// Disk guards the free space of the file systems that the data lies on: writes
// are refused before the engine fails. It is safe for concurrent use.
type Disk struct {
	paths []string
	least uint64
	read  func(path string) (Space, error)

	polling sync.Mutex // held while the file systems are asked, which may hang

	mu    sync.Mutex // guards what follows, never while asking
	fault error      // nil: there is room
	full  bool
}

// NewDisk guards the file systems of the paths. least is the free space in bytes
// below which nothing may be written; 0 turns the guard off, MinFreeAuto
// measures. Poll looks; until its first call there is room.
func NewDisk(least uint64, read func(path string) (Space, error), paths ...string) *Disk {
	return &Disk{paths: paths, least: least, read: read}
}

// Poll looks at the file systems and reports whether the answer of Free turned.
// A full disk has room again at a tenth more than the least. One that cannot be
// asked stays what it was for Full, and is a fault for Free.
func (d *Disk) Poll() (changed bool) {
	d.polling.Lock()
	defer d.polling.Unlock()
	was, had := d.Full(), d.Free()
	lowest, asked := uint64(0), true
	full, fault := false, error(nil)
	for i, path := range d.paths {
		s, err := d.read(path)
		if err != nil {
			asked, full, fault = false, was, fmt.Errorf("no se puede saber el espacio libre: %w", err)
			break
		}
		if i == 0 || s.Free < lowest {
			lowest = s.Free
		}
		need := leastOf(d.least, s.Total)
		if was {
			need += need / 10
		}
		if s.Free < need && !full {
			full, fault = true, fmt.Errorf("quedan %s libres en el disco de %s y hacen falta %s", bytesText(s.Free), path, bytesText(need))
		}
	}
	d.mu.Lock()
	d.full, d.fault = full, fault
	d.mu.Unlock()
	if asked {
		diskFree.Set(float64(lowest))
	}
	diskFull.Set(map[bool]float64{true: 1}[full])
	return (had == nil) != (fault == nil)
}

// leastOf is the least free space of a file system of the given size.
func leastOf(least, total uint64) uint64 {
	if least == MinFreeAuto {
		return max(autoLeast, min(total/20, autoMost))
	}
	return least
}

// Full reports whether the last Poll found too little room.
func (d *Disk) Full() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.full
}

// Free says what is wrong with the disk as the last Poll found it, nil when
// there is room.
func (d *Disk) Free() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault
}

// bytesText writes bytes as a person reads them.
func bytesText(n uint64) string {
	switch {
	case n >= gib:
		return fmt.Sprintf("%.1f GiB", float64(n)/gib)
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}
