package anthropic

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/ddd26017/fixpoint/inference"
)

// media writes an image or a file.
func media(p inference.Part, role inference.Role) (sdk.ContentBlockParamUnion, error) {
	var none sdk.ContentBlockParamUnion
	if p.Kind != inference.PartImage && p.Kind != inference.PartFile {
		return none, cannot(p, role)
	}
	if p.Data == "" && p.URI == "" {
		return none, fmt.Errorf("a part of kind %q has neither data nor a URI", p.Kind)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(p.Data))
	kind, _, err := mime.ParseMediaType(cmp.Or(p.MediaType, http.DetectContentType([]byte(p.Data))))
	if err != nil {
		kind = p.MediaType
	}
	if p.Kind == inference.PartImage {
		if p.Data == "" {
			return sdk.NewImageBlock(sdk.URLImageSourceParam{URL: p.URI}), nil
		}
		return sdk.NewImageBlockBase64(kind, encoded), nil
	}
	file := &sdk.DocumentBlockParam{}
	switch {
	case p.Data == "":
		file.Source.OfURL = &sdk.URLPDFSourceParam{URL: p.URI}
	case kind == "application/pdf":
		file.Source.OfBase64 = &sdk.Base64PDFSourceParam{Data: encoded}
	case strings.HasPrefix(kind, "text/"):
		file.Source.OfText = &sdk.PlainTextSourceParam{Data: string(p.Data)}
	default:
		return none, cannot(p, role)
	}
	if p.Text != "" {
		file.Title = param.NewOpt(p.Text)
	}
	return sdk.ContentBlockParamUnion{OfDocument: file}, nil
}

// cannot says that a part has no place in a message.
func cannot(p inference.Part, role inference.Role) error {
	kind := p.Kind
	if p.MediaType != "" {
		kind += " (" + p.MediaType + ")"
	}
	return fmt.Errorf("a part of kind %s cannot be sent in a message of role %q", kind, role)
}
