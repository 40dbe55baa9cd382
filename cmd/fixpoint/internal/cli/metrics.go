package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ddd26017/fixpoint/engine/worker"
)

// metrics are what a worker tells Prometheus.
type metrics struct {
	worker   *worker.Worker
	outcomes *prometheus.CounterVec
	waited   *prometheus.HistogramVec
}

func newMetrics() *metrics {
	return &metrics{
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fixpoint_activations_total", Help: "Activations that are over, by kind, fate and how the run stands.",
		}, []string{"kind", "fate", "status", "reason"}),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fixpoint_activation_seconds", Help: "Time from when an activation was due until it was over.",
			Buckets: []float64{.1, .5, 1, 5, 10, 30, 60, 300, 1800, 7200},
		}, []string{"priority"}),
	}
}

// over counts an activation.
func (m *metrics) over(r worker.Report) {
	o := r.Outcome
	m.outcomes.WithLabelValues(string(o.Kind), string(o.Fate), string(o.Status), string(o.Reason)).Inc()
	m.waited.WithLabelValues(string(r.Lane.Priority)).Observe(max(r.Waited, 0).Seconds())
}

// counters are those of worker.Stats.
var counters = []struct {
	desc  *prometheus.Desc
	value func(worker.Stats) int64
}{
	{counter("claims", "Wake-ups that the worker took."), func(s worker.Stats) int64 { return s.Claims }},
	{counter("runs", "Runs that it started or went on with."), func(s worker.Stats) int64 { return s.Runs }},
	{counter("taken_up", "Of these, runs whose worker had failed or moved."), func(s worker.Stats) int64 { return s.TakenUp }},
	{counter("retries", "Attempts that came to nothing and are made again."), func(s worker.Stats) int64 { return s.Retries }},
	{counter("dead", "Activations that it gave up."), func(s worker.Stats) int64 { return s.Dead }},
	{counter("lease_held", "Times that another worker had the thread."), func(s worker.Stats) int64 { return s.LeaseHeld }},
	{counter("lease_losses", "Runs that lost their thread to another worker."), func(s worker.Stats) int64 { return s.LeaseLost }},
	{counter("store_faults", "Calls of the store that failed."), func(s worker.Stats) int64 { return s.Faults }},
	{counter("effects_delivered", "Effects of the outbox that it delivered."), func(s worker.Stats) int64 { return s.EffectsDelivered }},
	{counter("effects_failed", "Deliveries that failed and are made again."), func(s worker.Stats) int64 { return s.EffectsFailed }},
	{counter("effects_dead", "Effects that it gave up."), func(s worker.Stats) int64 { return s.EffectsDead }},
}

func counter(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("fixpoint_worker_"+name+"_total", help, nil, nil)
}

var (
	running = prometheus.NewDesc("fixpoint_worker_running", "Runs under way.", nil, nil)
	depth   = prometheus.NewDesc("fixpoint_queue_depth", "Activations in a lane of the store.", []string{"priority", "tenant", "state"}, nil)
	oldest  = prometheus.NewDesc("fixpoint_queue_oldest_seconds", "Age of what is due for longest in a lane.", []string{"priority", "tenant"}, nil)
)

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{running, depth, oldest} {
		to <- d
	}
	for _, c := range counters {
		to <- c.desc
	}
}

// lookTimeout is how long a look at the lanes may take.
const lookTimeout = 5 * time.Second

// Collect implements prometheus.Collector. The lanes are those of the store, whichever
// worker serves them.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	stats := m.worker.Stats()
	to <- prometheus.MustNewConstMetric(running, prometheus.GaugeValue, float64(stats.Running))
	for _, c := range counters {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(c.value(stats)))
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	lanes, err := m.worker.Lanes(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(depth, err)
		return
	}
	for _, l := range lanes {
		p, tenant := string(l.Priority), strings.ToValidUTF8(l.Tenant, "\uFFFD")
		for _, s := range []struct {
			state string
			n     int
		}{{"due", l.Due}, {"waiting", l.Waiting}, {"claimed", l.Claimed}, {"dead", l.Dead}} {
			to <- prometheus.MustNewConstMetric(depth, prometheus.GaugeValue, float64(s.n), p, tenant, s.state)
		}
		age := 0.0
		if !l.Oldest.IsZero() {
			age = max(time.Since(l.Oldest), 0).Seconds()
		}
		to <- prometheus.MustNewConstMetric(oldest, prometheus.GaugeValue, age, p, tenant)
	}
}

// serve serves the counts of a worker at an address until stop is called; "" is nowhere.
func (m *metrics) serve(ctx context.Context, address string, w *worker.Worker, log *slog.Logger) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	m.worker = w
	if host, port, err := net.SplitHostPort(address); err == nil && host == "" {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, usageError{fmt.Errorf("fixpoint: --metrics: %w", err)}
	}
	all := prometheus.NewRegistry()
	all.MustRegister(m, m.outcomes, m.waited, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: lookTimeout}
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("the metrics are not served any more", "error", err)
		}
	}()
	log.Info("metrics", "address", "http://"+l.Addr().String()+"/metrics")
	return func() { _ = server.Close() }, nil // nobody waits for an answer that counts
}
