package openai

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

// dataURL returns a part's data as a URL.
func dataURL(p inference.Part) string {
	kind := cmp.Or(p.MediaType, http.DetectContentType([]byte(p.Data)))
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString([]byte(p.Data))
}

// address returns where a part's media is: in the URL itself, or at its URI.
func address(p inference.Part) (string, error) {
	switch {
	case p.Data != "":
		return dataURL(p), nil
	case p.URI != "":
		return p.URI, nil
	}
	return "", remote.Unsent(fmt.Errorf("a part of kind %q has neither data nor a URI", p.Kind))
}

// filename is what the service is told that a file is called: it wants to hear a name.
func filename(p inference.Part) string {
	if p.Text == "" && p.MediaType == "application/pdf" {
		return "file.pdf"
	}
	return cmp.Or(p.Text, "file")
}

// audioFormat returns the service's word for a sort of audio, or "".
func audioFormat(mediaType string) string {
	base, _, _ := strings.Cut(mediaType, ";")
	switch strings.ToLower(strings.TrimSpace(base)) {
	case "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return "wav"
	case "audio/mpeg", "audio/mp3":
		return "mp3"
	}
	return ""
}

// cannot says that a part has no place in a message.
func cannot(p inference.Part, role inference.Role, api API) error {
	kind := p.Kind
	if p.MediaType != "" {
		kind += " (" + p.MediaType + ")"
	}
	return remote.Unsent(fmt.Errorf("a part of kind %s cannot be sent in a message of role %q by %s", kind, role, api))
}
