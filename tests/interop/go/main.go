// gohbase, a client without a JVM: go run . HOST:PORT-OF-ZOOKEEPER TABLE
// The table is made (and dropped) here: families "f", three versions, and a region boundary at "m".
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tsuna/gohbase"
	"github.com/tsuna/gohbase/filter"
	"github.com/tsuna/gohbase/hrpc"
)

var passed, failed int

func run(name string, body func() error) {
	if err := body(); err != nil {
		failed++
		fmt.Printf("FAILED gohbase %s: %v\n", name, err)
		return
	}
	passed++
	fmt.Printf("ok gohbase %s\n", name)
}

func same(what string, expected, got any) error {
	if fmt.Sprint(expected) != fmt.Sprint(got) {
		return fmt.Errorf("%s: expected %v, got %v", what, expected, got)
	}
	return nil
}

func show(r *hrpc.Result) string {
	s := ""
	for _, c := range r.Cells {
		if s != "" {
			s += " "
		}
		s += fmt.Sprintf("%s/%s:%s=%s", c.Row, c.Family, c.Qualifier, c.Value)
	}
	return s
}

func one(qualifier, value string) map[string]map[string][]byte {
	return map[string]map[string][]byte{"f": {qualifier: []byte(value)}}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: interop ZOOKEEPER TABLE")
		os.Exit(2)
	}
	table := os.Args[2]
	client := gohbase.NewClient(os.Args[1])
	admin := gohbase.NewAdminClient(os.Args[1])
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()

	get := func(row string, options ...func(hrpc.Call) error) (string, error) {
		g, err := hrpc.NewGetStr(ctx, table, row, options...)
		if err != nil {
			return "", err
		}
		r, err := client.Get(g)
		if err != nil {
			return "", err
		}
		return show(r), nil
	}
	put := func(row, qualifier, value string) error {
		p, err := hrpc.NewPutStr(ctx, table, row, one(qualifier, value))
		if err != nil {
			return err
		}
		_, err = client.Put(p)
		return err
	}
	scan := func(start, stop string, options ...func(hrpc.Call) error) ([]string, error) {
		s, err := hrpc.NewScanRangeStr(ctx, table, start, stop, options...)
		if err != nil {
			return nil, err
		}
		scanner := client.Scan(s)
		var rows []string
		for {
			r, err := scanner.Next()
			if err == io.EOF {
				return rows, nil
			}
			if err != nil {
				return nil, err
			}
			rows = append(rows, show(r))
		}
	}

	run("create table", func() error {
		return admin.CreateTable(hrpc.NewCreateTable(ctx, []byte(table),
			map[string]map[string]string{"f": {"VERSIONS": "3"}}, hrpc.SplitKeys([][]byte{[]byte("m")})))
	})
	run("put, get", func() error {
		if err := put("a", "q", "1"); err != nil {
			return err
		}
		got, err := get("a")
		if err != nil {
			return err
		}
		if err := same("row", "a/f:q=1", got); err != nil {
			return err
		}
		got, err = get("none")
		if err != nil {
			return err
		}
		return same("absent", "", got)
	})
	run("versions by timestamp", func() error {
		for ts := uint64(10); ts <= 30; ts += 10 {
			p, err := hrpc.NewPutStr(ctx, table, "v", one("q", fmt.Sprint("v", ts)), hrpc.TimestampUint64(ts))
			if err != nil {
				return err
			}
			if _, err := client.Put(p); err != nil {
				return err
			}
		}
		got, err := get("v", hrpc.MaxVersions(5), hrpc.TimeRangeUint64(0, 25))
		if err != nil {
			return err
		}
		return same("row", "v/f:q=v20 v/f:q=v10", got)
	})
	run("many puts over two regions, scan, limits, reversed", func() error {
		errs := make(chan error, 1000)
		for i := 0; i < 1000; i++ {
			go func(i int) {
				prefix := "k"
				if i >= 500 {
					prefix = "p"
				}
				errs <- put(fmt.Sprintf("%s%04d", prefix, i), "q", fmt.Sprint(i))
			}(i)
		}
		for i := 0; i < 1000; i++ {
			if err := <-errs; err != nil {
				return err
			}
		}
		rows, err := scan("k", "q", hrpc.NumberOfRows(37))
		if err != nil {
			return err
		}
		if err := same("rows", 1000, len(rows)); err != nil {
			return err
		}
		for i, r := range rows {
			prefix := "k"
			if i >= 500 {
				prefix = "p"
			}
			if err := same("row", fmt.Sprintf("%s%04d/f:q=%d", prefix, i, i), r); err != nil {
				return err
			}
		}
		rows, err = scan("k0003", "k0000", hrpc.Reversed())
		if err != nil {
			return err
		}
		return same("reversed", "[k0003/f:q=3 k0002/f:q=2 k0001/f:q=1]", rows)
	})
	run("scan with a filter", func() error {
		f := filter.NewPrefixFilter([]byte("k000"))
		rows, err := scan("", "", hrpc.Filters(f))
		if err != nil {
			return err
		}
		return same("rows", 10, len(rows))
	})
	run("scan in pieces", func() error {
		rows, err := scan("k", "q", hrpc.MaxResultSize(200))
		if err != nil {
			return err
		}
		return same("rows", 1000, len(rows))
	})
	run("increment", func() error {
		for i, want := range []int64{7, 14, 21} {
			inc, err := hrpc.NewIncStrSingle(ctx, table, "i", "f", "n", 7)
			if err != nil {
				return err
			}
			got, err := client.Increment(inc)
			if err != nil {
				return err
			}
			if err := same(fmt.Sprint("increment ", i), want, got); err != nil {
				return err
			}
		}
		g, err := hrpc.NewGetStr(ctx, table, "i")
		if err != nil {
			return err
		}
		r, err := client.Get(g)
		if err != nil {
			return err
		}
		return same("stored", 21, binary.BigEndian.Uint64(r.Cells[0].Value))
	})
	run("append, delete, check and put", func() error {
		a, err := hrpc.NewAppStr(ctx, table, "s", one("q", "ab"))
		if err != nil {
			return err
		}
		if _, err = client.Append(a); err != nil {
			return err
		}
		p, err := hrpc.NewPutStr(ctx, table, "s", one("q", "new"))
		if err != nil {
			return err
		}
		ok, err := client.CheckAndPut(p, "f", "q", []byte("other"))
		if err != nil {
			return err
		}
		if err := same("stale check", false, ok); err != nil {
			return err
		}
		p, _ = hrpc.NewPutStr(ctx, table, "s", one("q", "new"))
		ok, err = client.CheckAndPut(p, "f", "q", []byte("ab"))
		if err != nil {
			return err
		}
		if err := same("check", true, ok); err != nil {
			return err
		}
		d, err := hrpc.NewDelStr(ctx, table, "s", nil)
		if err != nil {
			return err
		}
		if _, err = client.Delete(d); err != nil {
			return err
		}
		got, err := get("s")
		if err != nil {
			return err
		}
		return same("deleted", "", got)
	})
	run("cluster status", func() error {
		status, err := admin.ClusterStatus()
		if err != nil {
			return err
		}
		return same("live servers", 1, len(status.GetLiveServers()))
	})
	run("disable, enable, disable, delete a table", func() error {
		if err := admin.DisableTable(hrpc.NewDisableTable(ctx, []byte(table))); err != nil {
			return err
		}
		if err := admin.EnableTable(hrpc.NewEnableTable(ctx, []byte(table))); err != nil {
			return err
		}
		got, err := get("a")
		if err != nil {
			return err
		}
		if err := same("row", "a/f:q=1", got); err != nil {
			return err
		}
		if err := admin.DisableTable(hrpc.NewDisableTable(ctx, []byte(table))); err != nil {
			return err
		}
		return admin.DeleteTable(hrpc.NewDeleteTable(ctx, []byte(table)))
	})
	client.Close()
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
