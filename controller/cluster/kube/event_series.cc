#include "controller/cluster/kube/event_series.h"

#include <algorithm>
#include <cstdio>

#include "base/fnv1a.h"
#include "base/rng.h"
#include "base/text.h"

namespace paceline::kube {

namespace {

std::string series_key(const cluster::Event& event) {
  const char separator = '\n';
  std::string key = str_cat(event.ns, "/", event.job);
  for (const std::string& part :
       {std::string(event.warning ? "W" : "N"), event.job_uid, event.reason, event.message}) {
    key += separator;
    key += part;
  }
  return key;
}

}  // namespace

EventSeries::Action EventSeries::take(const cluster::Event& event, TimePoint now, std::uint64_t salt) {
  const std::string key = series_key(event);
  const auto found = series_.find(key);
  if (found != series_.end() && now - found->second.seen <= kSeriesTime) {
    Series& series = found->second;
    ++series.count;
    series.seen = now;
    if (now - series.written < kSeriesWrite) return Nothing{};
    series.written = now;
    return Count{series.name, series.count};
  }
  if (!take_token(str_cat(event.ns, "/", event.job, "/", event.job_uid), now)) return Drop{};
  prune(now);
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx",
                static_cast<unsigned long long>(mix64(fnv1a(key) ^ mix64(salt))));
  std::string name = str_cat(event.job, ".", digits);
  series_[key] = Series{name, 1, now, now};
  return Create{std::move(name)};
}

void EventSeries::forget(const cluster::Event& event) {
  series_.erase(series_key(event));
}

bool EventSeries::take_token(const std::string& job, TimePoint now) {
  Bucket& bucket = buckets_.try_emplace(job, Bucket{kEventBurst, now}).first->second;
  const double gained =
      std::chrono::duration<double>(now - bucket.filled) / std::chrono::duration<double>(kEventEvery);
  bucket.tokens = std::min<double>(kEventBurst, bucket.tokens + gained);
  bucket.filled = now;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

void EventSeries::prune(TimePoint now) {
  if (series_.size() >= kMaxSeries) {
    std::erase_if(series_, [&](const auto& each) { return now - each.second.seen > kSeriesTime; });
    if (series_.size() >= kMaxSeries) series_.clear();  // at worst, an event stands there twice
  }
  if (buckets_.size() >= kMaxSeries) {
    const Duration full = kEventBurst * kEventEvery;
    std::erase_if(buckets_, [&](const auto& each) { return now - each.second.filled > full; });
    if (buckets_.size() >= kMaxSeries) buckets_.clear();
  }
}

}  // namespace paceline::kube
