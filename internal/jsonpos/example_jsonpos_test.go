package jsonpos_test

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

func Example() {
	type config struct {
		Port  int      `json:"port"`
		Hosts []string `json:"hosts"`
	}
	var c jsonpos.Check
	if c.Tree(jsonpos.Parse([]byte("{\n  \"port\": \"80\",\n  \"hosts\": [\"a\", 1]\n}"))) {
		c.Fit(reflect.TypeFor[config](), c.Root, nil, jsonpos.Rules{})
	}
	for _, f := range c.Faults() {
		fmt.Printf("%d:%d: %s: %s\n", f.Line, f.Column, f.Path, f.Msg)
	}
	// Output:
	// 2:11: port: want a number, got a string
	// 3:18: hosts[1]: want a string, got a number
}

func ExampleCheck_Value() {
	var c jsonpos.Check
	c.Tree(jsonpos.Parse([]byte(`{"port": 0}`)))
	c.Value(jsonpos.Path{"port"}, "want a port above %d", 0)
	f := c.Faults()[0]
	fmt.Println(f.Line, f.Column, f.Path, f.Msg)
	// Output: 1 10 port want a port above 0
}

func ExampleNode_JSON() {
	fmt.Println(jsonpos.Parse([]byte(`{"b": 1.50, "a": [ ]}`)).JSON())
	// Output: {"a":[],"b":1.50}
}

func ExampleDecode() {
	var v struct {
		Port int `json:"port"`
	}
	offset, err := jsonpos.Decode(`{"port": "80"}`, &v, (*json.Decoder).DisallowUnknownFields)
	fmt.Println(offset, err != nil)
	// Output: 13 true
}

func ExampleEncode() {
	fmt.Println(jsonpos.Encode([]string{"a < b"}))
	// Output: ["a < b"] <nil>
}
