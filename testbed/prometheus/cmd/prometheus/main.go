// A Prometheus without service discovery: it scrapes the targets of --targets once a second, evaluates the rules of --rules as often, and
// answers queries and everything else of its HTTP API at --listen, over TLS and with what --web-config says (its own web configuration file).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/features"
	"github.com/prometheus/prometheus/web"
)

const evaluation = time.Second

const job = "dogwatch"

const scraping = `
global: { scrape_interval: 1s, scrape_timeout: 1s }
scrape_configs: [{ job_name: ` + job + ` }]
`

var (
	listen    = flag.String("listen", "", "host:port")
	data      = flag.String("data", "", "an empty folder")
	ruleFile  = flag.String("rules", "", "a rule file; read again on SIGHUP")
	targets   = flag.String("targets", "", "a JSON object: the address to scrape by the label instance; none is scraped without it")
	webConfig = flag.String("web-config", "", "a web configuration file; none is plain HTTP")
	external  = flag.String("external-url", "", "its address with the path it is served under")
)

// localStorage is what the HTTP API asks of the store beside queries.
type localStorage struct{ *tsdb.DB }

func (s localStorage) Stats(label string, limit int) (*tsdb.Stats, error) {
	return s.Head().Stats(label, limit), nil
}

func (s localStorage) WALReplayStatus() (tsdb.WALReplayStatus, error) {
	return tsdb.WALReplayStatus{}, nil
}

func (s localStorage) BlockMetas() ([]tsdb.BlockMeta, error) { return s.DB.BlockMetas(), nil }

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		slog.Error(err.Error())
		os.Exit(1)
	}
}

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	logger := promslog.New(&promslog.Config{})
	listener := must(net.Listen("tcp", *listen))
	address := must(url.Parse(*external))
	db := must(tsdb.Open(*data, logger, nil, tsdb.DefaultOptions(), nil))
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: logger, MaxSamples: 50_000_000, Timeout: 2 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
	})
	manager := evaluate(ctx, logger, db, engine, address)
	scraper := scrapeTargets(logger, db)
	handler := serve(ctx, logger, db, engine, manager, scraper, address)
	check(handler.Run(ctx, []net.Listener{listener}, *webConfig))
	scraper.Stop()
	manager.Stop()
	check(db.Close())
}

// scrapeTargets scrapes every target from now on.
func scrapeTargets(logger *slog.Logger, db *tsdb.DB) *scrape.Manager {
	manager := must(scrape.NewManager(&scrape.Options{}, logger, nil, db, prometheus.NewRegistry()))
	if *targets == "" {
		return manager
	}
	check(manager.ApplyConfig(must(config.Load(scraping, logger))))
	addresses := map[string]string{}
	check(json.Unmarshal(must(os.ReadFile(*targets)), &addresses))
	group := &targetgroup.Group{Source: *targets}
	for instance, address := range addresses {
		group.Targets = append(group.Targets, model.LabelSet{
			model.AddressLabel: model.LabelValue(address), model.InstanceLabel: model.LabelValue(instance),
		})
	}
	found := make(chan map[string][]*targetgroup.Group, 1)
	found <- map[string][]*targetgroup.Group{job: {group}}
	go func() { check(manager.Run(found)) }()
	return manager
}

// evaluate runs the rules, now and again on each SIGHUP.
func evaluate(ctx context.Context, logger *slog.Logger, db storage.Storage, engine *promql.Engine, address *url.URL) *rules.Manager {
	manager := rules.NewManager(&rules.ManagerOptions{
		NameValidationScheme: model.UTF8Validation, ExternalURL: address, Context: ctx, Logger: logger,
		Appendable: db, Queryable: db, QueryFunc: rules.EngineQueryFunc(engine, db),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Registerer: prometheus.NewRegistry(), FeatureRegistry: features.NewRegistry(),
	})
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	load := func() error {
		return manager.Update(evaluation, []string{*ruleFile}, labels.EmptyLabels(), address.String(), nil)
	}
	check(load())
	go manager.Run()
	go func() {
		for range reload {
			check(load())
		}
	}()
	return manager
}

func serve(ctx context.Context, logger *slog.Logger, db *tsdb.DB, engine *promql.Engine, manager *rules.Manager, scraper *scrape.Manager, address *url.URL) *web.Handler {
	registry := prometheus.NewRegistry()
	handler := web.New(logger, &web.Options{
		Context: ctx, Storage: db, LocalStorage: localStorage{db}, ExemplarStorage: db, TSDBDir: *data,
		QueryEngine: engine, LookbackDelta: 5 * time.Minute, RuleManager: manager,
		ScrapeManager: scraper,
		Notifier:      notifier.NewManager(&notifier.Options{}, model.UTF8Validation, logger),
		Version:       &web.PrometheusVersion{}, Flags: map[string]string{},
		ListenAddresses: []string{*listen}, MaxConnections: 512, ReadTimeout: 5 * time.Minute,
		ExternalURL: address, RoutePrefix: "/" + strings.Trim(address.Path, "/"), AppName: "Prometheus",
		Gatherer: registry, Registerer: registry, FeatureRegistry: features.NewRegistry(),
	})
	check(handler.ApplyConfig(&config.DefaultConfig))
	handler.SetReady(web.Ready)
	return handler
}
