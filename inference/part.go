package inference

import (
	"encoding/base64"
	"fmt"
)

// The kinds of part that have a meaning here. Other kinds are free to use; whoever does not know a kind passes it on.
const (
	PartText      = "text"
	PartReasoning = "reasoning"
	PartImage     = "image"
	PartAudio     = "audio"
	PartFile      = "file"
	// PartVendor is a block only the vendor that wrote it understands; it is sent back to it unchanged.
	PartVendor = "vendor"
)

// Part is a piece of a message other than its text: media, reasoning, or a vendor's block. It is comparable and holds
// nothing that can change. Media is either at URI or in Data.
type Part struct {
	Kind      string `json:"kind"`
	MediaType string `json:"media_type,omitempty"`
	Text      string `json:"text,omitempty"`
	URI       string `json:"uri,omitempty"`
	Data      Bytes  `json:"data,omitempty"`
	// Extra is what a vendor needs to see again.
	Extra JSON `json:"extra,omitempty"`
}

// Bytes is immutable binary data. Convert with Bytes(b) and []byte(s). Its text form, in JSON too, is base64.
type Bytes string

// MarshalText writes standard base64.
func (b Bytes) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, []byte(b)), nil
}

// UnmarshalText reads standard base64.
func (b *Bytes) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return fmt.Errorf("inference: part data is not base64: %w", err)
	}
	*b = Bytes(raw)
	return nil
}
