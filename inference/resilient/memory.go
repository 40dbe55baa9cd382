package resilient

import "sync"

// remembered is how many keys a memory keeps at least, once it has had that many.
const remembered = 512

// memory is a map that forgets what was longest unused. The zero memory is empty. It is safe for concurrent use.
type memory struct {
	mu sync.Mutex
	// What is used gets into young. When that is full, it becomes old, and what was old is forgotten.
	young, old map[string]string
}

// get returns what was put last for the key; "" for a key that is empty or not known.
func (m *memory) get(key string) string {
	m.mu.Lock()
	value, ok := m.young[key]
	if !ok {
		value = m.old[key]
	}
	m.mu.Unlock()
	if !ok && value != "" {
		m.put(key, value)
	}
	return value
}

// put sets the value of a key that is not empty.
func (m *memory) put(key, value string) {
	if key == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.young[key]; !ok && len(m.young) == remembered || m.young == nil {
		m.young, m.old = map[string]string{}, m.young
	}
	m.young[key] = value
}
