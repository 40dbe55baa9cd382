package nats

import (
	"fmt"
	"net/url"
	"strings"
)

// withoutSecrets returns the addresses of a list as errors may show them: without users,
// passwords and tokens. Nothing of an address that is no URL is shown, because what part of
// it is secret cannot be told.
func withoutSecrets(list string) (string, error) {
	addresses := strings.Split(list, ",")
	for i, address := range addresses {
		address = strings.TrimSpace(address)
		if !strings.Contains(address, "://") {
			address = "nats://" + address
		}
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			return "", fmt.Errorf("nats: address %d of %d is no URL; write nats://HOST:PORT, or nats://USER:PASSWORD@HOST:PORT with %%XX for all but letters and digits of a password", i+1, len(addresses))
		}
		addresses[i] = u.Scheme + "://" + u.Host
	}
	return strings.Join(addresses, ","), nil
}
