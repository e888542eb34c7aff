#pragma once

// Metrics in Prometheus' text format 0.0.4: counters, gauges, histograms. Thread-safe.
//
// Label values must be of small sets (results, phases, status codes): a family keeps so many series, further
// ones are counted in one series whose values are all "other". Names of objects are for pages that are made
// anew for each scrape, by a caller that bounds them.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/guarded.h"

namespace paceline::web {

inline constexpr std::size_t kMaxSeries = 200;

using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

class Metrics {
 public:
  explicit Metrics(std::size_t most_series = kMaxSeries) : most_series_(most_series) {}  // of a family

  // Families are declared before they are used, each once, by their whole names: paceline_jobs.
  void counter(std::string_view name, std::string_view help) { declare(name, Kind::kCounter, help, {}); }
  void gauge(std::string_view name, std::string_view help) { declare(name, Kind::kGauge, help, {}); }
  void histogram(std::string_view name, std::string_view help, std::vector<double> bounds) {  // ascending
    declare(name, Kind::kHistogram, help, std::move(bounds));
  }

  // REQUIRES: the family is declared, of this kind.
  void add(std::string_view name, Labels labels, double value = 1);  // counters
  void set(std::string_view name, Labels labels, double value);      // gauges
  void observe(std::string_view name, Labels labels, double value);  // histograms

  // Families and series in the order of their names.
  std::string text() const;

 private:
  enum class Kind : std::uint8_t { kCounter, kGauge, kHistogram };
  struct Series {
    double value = 0;                    // of a histogram: the sum
    std::uint64_t count = 0;             // histograms
    std::vector<std::uint64_t> buckets;  // histograms: observations at most bounds[i], and above i-1
  };
  struct Family {
    Kind kind = Kind::kCounter;
    std::string help;
    std::vector<double> bounds;
    std::map<std::string, Series> series;  // by its labels as text: code="200",method="GET"
  };
  using Families = std::map<std::string, Family, std::less<>>;

  void declare(std::string_view name, Kind kind, std::string_view help, std::vector<double> bounds);
  Series& series(Families& families, std::string_view name, Kind kind, Labels labels) const;

  const std::size_t most_series_;
  mutable Guarded<Families> families_;
};

}  // namespace paceline::web
