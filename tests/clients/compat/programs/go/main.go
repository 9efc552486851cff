// A go-mssqldb client that takes part in the conversation of tests/clients/compat/conversation.py.
//
//	go_client HOST PORT USER OPTIONS        OPTIONS are parameters of its URL
package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"
)

const timeLayout = "2006-01-02 15:04:05.000000"

type param struct {
	kind, name string
	out        bool
	value      *string
}

// What database/sql's DB, Conn and Tx have in common.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

type client struct {
	pool *sql.DB
	conn *sql.Conn
	tx   *sql.Tx
	in   *bufio.Scanner
}

func report(kind string, value any) {
	line, err := json.Marshal(map[string]any{kind: value})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
}

func plain(value any) any {
	switch v := value.(type) {
	case time.Time:
		return v.Format(timeLayout)
	case *any:
		return plain(*v)
	}
	return value
}

// Numerics come as the bytes of their digits, uniqueidentifiers as SQL Server orders their bytes.
func plainBytes(value []byte, kind string) any {
	switch kind {
	case "DECIMAL", "MONEY", "SMALLMONEY":
		return string(value)
	case "UNIQUEIDENTIFIER":
		var id mssql.UniqueIdentifier
		if err := id.Scan(value); err != nil {
			log.Fatal(err)
		}
		return id.String()
	}
	return hex.EncodeToString(value)
}

// What the server says without an error goes to the driver's log.
type messageLog struct{}

func (messageLog) Log(_ context.Context, category msdsn.Log, message string) {
	if category == msdsn.LogMessages {
		report("message", []any{nil, 0, message})
	}
}

// Go's value for a parameter; for an output, the place that takes it.
func (p param) given() (any, error) {
	if p.out {
		switch p.kind {
		case "int":
			return sql.Out{Dest: new(sql.NullInt64)}, nil
		case "datetime":
			return sql.Out{Dest: new(sql.NullTime)}, nil
		}
		return nil, fmt.Errorf("no output of type %s", p.kind)
	}
	if p.value == nil {
		return nil, nil
	}
	switch p.kind {
	case "bit":
		return *p.value == "1", nil
	case "smallint", "int", "bigint":
		return strconv.ParseInt(*p.value, 10, 64)
	case "real", "float":
		return strconv.ParseFloat(*p.value, 64)
	case "binary":
		return hex.DecodeString(*p.value)
	case "date":
		return time.ParseInLocation(time.DateOnly, *p.value, time.Local)
	case "datetime":
		// a time.Time always has a zone, and the driver sends it along
		return time.ParseInLocation("2006-01-02 15:04:05.999999", *p.value, time.Local)
	}
	return *p.value, nil
}

func (c *client) querier() querier {
	if c.tx != nil {
		return c.tx
	}
	return c.conn
}

func (c *client) run(ctx context.Context, text string, args ...any) error {
	rows, err := c.querier().QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		if len(columns) > 0 {
			report("row_columns", columns)
		}
		for rows.Next() {
			if err := tellRow(rows); err != nil {
				return err
			}
		}
		if !rows.NextResultSet() {
			return rows.Err()
		}
	}
}

func tellRow(rows *sql.Rows) error {
	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	values, places := make([]any, len(types)), make([]any, len(types))
	for i := range values {
		places[i] = &values[i]
	}
	if err := rows.Scan(places...); err != nil {
		return err
	}
	for i := range values {
		if raw, is := values[i].([]byte); is {
			values[i] = plainBytes(raw, types[i].DatabaseTypeName())
		} else {
			values[i] = plain(values[i])
		}
	}
	report("row", values)
	return nil
}

func (c *client) call(name string, params []param) error {
	var status mssql.ReturnStatus
	args := []any{&status}
	var outputs []any
	for _, p := range params {
		given, err := p.given()
		if err != nil {
			return err
		}
		if out, is := given.(sql.Out); is {
			outputs = append(outputs, out.Dest)
		}
		if p.name != "" {
			given = sql.Named(strings.TrimPrefix(p.name, "@"), given)
		}
		args = append(args, given)
	}
	if err := c.run(context.Background(), name, args...); err != nil {
		return err
	}
	report("status", status)
	values := []any{}
	for _, output := range outputs {
		switch v := output.(type) {
		case *sql.NullInt64:
			values = append(values, v.Int64)
		case *sql.NullTime:
			values = append(values, v.Time.Format(timeLayout))
		}
	}
	report("output", values)
	return nil
}

func (c *client) execute(text string, params []param) error {
	args := []any{}
	for place, p := range params {
		given, err := p.given()
		if err != nil {
			return err
		}
		args = append(args, given)
		text = strings.Replace(text, "?", fmt.Sprintf("@p%d", place+1), 1)
	}
	return c.run(context.Background(), text, args...)
}

func (c *client) again() (err error) {
	if err = c.conn.Close(); err != nil {
		return err
	}
	c.conn, err = c.pool.Conn(context.Background())
	return err
}

func (c *client) abandon(text string) error {
	rows, err := c.conn.QueryContext(context.Background(), text)
	if err != nil {
		return err
	}
	defer rows.Close()
	rows.Next()
	return tellRow(rows)
}

// The driver gives up a connection whose time ran out: this takes another.
func (c *client) timeout(most time.Duration, text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	rows, err := c.pool.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

func (c *client) obey(request []string) (err error) {
	background := context.Background()
	switch request[0] {
	case "rpc":
		return c.call(request[1], c.params())
	case "execute":
		return c.execute(request[1], c.params())
	case "language":
		return c.run(background, request[1])
	case "begin":
		c.tx, err = c.conn.BeginTx(background, nil)
		return err
	case "commit":
		tx := c.tx
		c.tx = nil
		return tx.Commit()
	case "rollback":
		tx := c.tx
		c.tx = nil
		return tx.Rollback()
	case "again":
		return c.again()
	case "abandon":
		return c.abandon(request[1])
	case "cancel":
		seconds, err := strconv.ParseFloat(request[1], 64)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(background)
		time.AfterFunc(time.Duration(seconds*float64(time.Second)), cancel)
		return c.run(ctx, request[2])
	case "timeout":
		seconds, err := strconv.Atoi(request[1])
		if err != nil {
			return err
		}
		return c.timeout(time.Duration(seconds)*time.Second, request[2])
	}
	return fmt.Errorf("unknown request %s", request[0])
}

func answering(err error) {
	if err != nil {
		var number any
		var server mssql.Error
		if errors.As(err, &server) {
			number = server.Number
		}
		report("error", []any{fmt.Sprintf("%T", err), number, err.Error()})
	}
	report("end", "results")
}

func (c *client) line() []string {
	if !c.in.Scan() {
		return nil
	}
	fields := strings.Split(c.in.Text(), "\t")
	for i := range fields {
		fields[i] = strings.NewReplacer(`\t`, "\t", `\n`, "\n", `\\`, `\`).Replace(fields[i])
	}
	return fields
}

func (c *client) params() (params []param) {
	for line := c.line(); line[0] != "go"; line = c.line() {
		p := param{kind: line[1], name: line[2], out: line[3] == "out"}
		if len(line) > 4 {
			p.value = &line[4]
		}
		params = append(params, p)
	}
	return params
}

func main() {
	c := client{in: bufio.NewScanner(os.Stdin)}
	c.in.Scan()
	address := url.URL{
		Scheme:   "sqlserver",
		User:     url.UserPassword(os.Args[3], c.in.Text()),
		Host:     os.Args[1] + ":" + os.Args[2],
		RawQuery: os.Args[4] + fmt.Sprintf("&dial+timeout=60&log=%d", msdsn.LogMessages),
	}
	mssql.SetContextLogger(messageLog{})
	var err error
	if c.pool, err = sql.Open("sqlserver", address.String()); err != nil {
		log.Fatal(err)
	}
	c.conn, err = c.pool.Conn(context.Background())
	answering(err)
	if err != nil {
		os.Exit(1)
	}
	for request := c.line(); request != nil; request = c.line() {
		answering(c.obey(request))
	}
}
