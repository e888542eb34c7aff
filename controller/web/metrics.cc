#include "controller/web/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "base/text.h"

namespace paceline::web {

namespace {

std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

std::string label_text(Labels labels, bool other) {
  std::string text;
  for (const auto& [name, value] : labels) {
    if (!text.empty()) text += ',';
    text += str_cat(name, "=\"", other ? "other" : escaped(value, true), "\"");
  }
  return text;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  constexpr std::size_t kLongest = 32;
  char buffer[kLongest];
  const auto end = std::to_chars(buffer, buffer + kLongest, value).ptr;
  return {buffer, end};
}

std::string line(std::string_view name, std::string_view labels, std::string_view more, double value) {
  std::string all(labels);
  if (!more.empty()) all += str_cat(all.empty() ? "" : ",", more);
  return all.empty() ? str_cat(name, " ", number(value), "\n")
                     : str_cat(name, "{", all, "} ", number(value), "\n");
}

}  // namespace

void Metrics::declare(std::string_view name, Kind kind, std::string_view help, std::vector<double> bounds) {
  auto families = families_.lock();
  const auto [entry, fresh] = families->try_emplace(std::string(name));
  PL_CHECK(fresh, "a metric is declared once");
  entry->second.kind = kind;
  entry->second.help = help;
  entry->second.bounds = std::move(bounds);
}

Metrics::Series& Metrics::series(Families& families, std::string_view name, Kind kind, Labels labels) const {
  const auto family = families.find(name);
  PL_CHECK(family != families.end() && family->second.kind == kind,
           "a metric is used as it was declared, after that");
  auto& all = family->second.series;
  const std::string text = label_text(labels, false);
  const auto found = all.find(text);
  if (found != all.end()) return found->second;
  Series& made = all[all.size() < most_series_ ? text : label_text(labels, true)];
  made.buckets.resize(family->second.bounds.size());
  return made;
}

void Metrics::add(std::string_view name, Labels labels, double value) {
  auto families = families_.lock();
  series(*families, name, Kind::kCounter, labels).value += value;
}

void Metrics::set(std::string_view name, Labels labels, double value) {
  auto families = families_.lock();
  series(*families, name, Kind::kGauge, labels).value = value;
}

void Metrics::observe(std::string_view name, Labels labels, double value) {
  auto families = families_.lock();
  Series& found = series(*families, name, Kind::kHistogram, labels);
  found.value += value;
  ++found.count;
  const std::vector<double>& bounds = families->find(name)->second.bounds;
  const auto at = static_cast<std::size_t>(std::ranges::lower_bound(bounds, value) - bounds.begin());
  if (at < found.buckets.size()) ++found.buckets[at];
}

std::string Metrics::text() const {
  auto families = families_.lock();
  std::string out;
  for (const auto& [name, family] : *families) {
    constexpr const char* kKinds[] = {"counter", "gauge", "histogram"};
    out += str_cat("# HELP ", name, " ", escaped(family.help, false), "\n# TYPE ", name, " ",
                   kKinds[static_cast<std::size_t>(family.kind)], "\n");
    for (const auto& [labels, series] : family.series) {
      if (family.kind != Kind::kHistogram) {
        out += line(name, labels, "", series.value);
        continue;
      }
      std::uint64_t below = 0;
      for (std::size_t i = 0; i < family.bounds.size(); ++i) {
        below += series.buckets[i];
        out += line(str_cat(name, "_bucket"), labels, str_cat("le=\"", number(family.bounds[i]), "\""),
                    static_cast<double>(below));
      }
      out += line(str_cat(name, "_bucket"), labels, "le=\"+Inf\"", static_cast<double>(series.count));
      out += line(str_cat(name, "_sum"), labels, "", series.value);
      out += line(str_cat(name, "_count"), labels, "", static_cast<double>(series.count));
    }
  }
  return out;
}

}  // namespace paceline::web
