#include "controller/stragglers/links.h"

#include <algorithm>
#include <cmath>

namespace paceline::stragglers {

namespace {

constexpr double kLeastRate = 1;         // bytes a second: below none is known
constexpr double kLeastLinkWidth = 0.2;  // of the noise, in logs: rates of links are not steady

// The median of all but one of the values. REQUIRES: that one is among them, and is not the only one.
double median_of_others(const std::vector<double>& sorted, double one) {
  const auto at = static_cast<std::size_t>(std::ranges::lower_bound(sorted, one) - sorted.begin());
  const auto other = [&](std::size_t i) { return sorted[i < at ? i : i + 1]; };
  const std::size_t others = sorted.size() - 1, middle = others / 2;
  return others % 2 != 0 ? other(middle) : (other(middle - 1) + other(middle)) / 2;
}

double in_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::uint64_t rise(std::uint64_t before, std::uint64_t now) {
  return now > before ? now - before : 0;
}

}  // namespace

void Links::begin_view(std::span<const int> places) {
  places_.assign(places.begin(), places.end());
  senders_.clear();
  senders_.resize(places_.size());
}

void Links::add(int rank, Duration at, std::span<const LinkCount> counts) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= senders_.size()) return;
  Sender& sender = senders_[static_cast<std::size_t>(rank)];
  if (sender.at && at <= *sender.at) return;
  const double seconds = sender.at ? in_seconds(at - *sender.at) : 0;
  for (const LinkCount& each : counts) {
    const bool valid = each.to >= 0 && static_cast<std::size_t>(each.to) < places_.size() && each.to != rank;
    if (!valid) continue;
    const auto [place, is_new] = sender.links.try_emplace(each.to);
    Link& link = place->second;
    const bool known = sender.at && !is_new;
    link.round = {};
    if (known) {
      link.round = {.seconds = seconds,
                    .rate = each.rate,
                    .bytes = rise(link.last.bytes, each.bytes),
                    .segments = rise(link.last.segments, each.segments),
                    .again = rise(link.last.segments_again, each.segments_again)};
    }
    link.last = each;
  }
  sender.fresh = sender.at.has_value();
  sender.at = at;
  const bool complete =
      std::ranges::all_of(senders_, [](const Sender& each) { return each.fresh || !each.at; });
  if (complete) judge();
}

void Links::judge() {
  std::vector<Link*> links;
  std::vector<double> costs;
  for (Sender& sender : senders_) {
    sender.fresh = false;
    for (auto& [to, link] : sender.links) {
      if (link.round.bytes < kLeastBytes || !(link.round.rate >= kLeastRate)) continue;
      links.push_back(&link);
      costs.push_back(link.round.cost());
    }
  }
  if (links.size() < 2) return;
  std::ranges::sort(costs);
  for (Link* const each : links) {
    Link& link = *each;
    const double typical = median_of_others(costs, link.round.cost());
    const double value = std::log(link.round.cost() / typical);
    link.noise.add(value);
    link.rounds[link.count % kRounds] = link.round;
    link.typical[link.count % kRounds] = typical;
    ++link.count;
    if (link.noise.is_known())
      link.series.add(value, std::max(link.noise.width(), kLeastLinkWidth), threshold_of(links.size()));
  }
  choose();
}

void Links::choose() {
  std::map<int, std::vector<Link*>> into;
  for (Sender& sender : senders_) {
    for (auto& [to, link] : sender.links) into[to].push_back(&link);
  }
  for (auto& [to, links] : into) {
    Link* slowest = nullptr;
    double factor = 0;
    for (Link* const link : links) {
      link->told = link->told && finding_of(*link);
      const auto means = means_of(*link);
      if (means && means->share >= kLeastLinkShare && means->factor > factor) {
        slowest = link;
        factor = means->factor;
      }
    }
    const bool told = std::ranges::any_of(links, [](const Link* link) { return link->told; });
    if (!told && slowest != nullptr) slowest->told = finding_of(*slowest).has_value();
  }
}

std::optional<LinkFinding> Links::means_of(const Link& link) {
  if (link.count < kRounds) return std::nullopt;
  double seconds = 0, busy = 0, bytes = 0, typical = 0, segments = 0, again = 0;
  for (std::size_t i = 0; i < kRounds; ++i) {
    const Round& round = link.rounds[i];
    seconds += round.seconds;
    busy += static_cast<double>(round.bytes) * round.cost();
    bytes += static_cast<double>(round.bytes);
    typical += link.typical[i] * static_cast<double>(round.bytes);
    segments += static_cast<double>(round.segments);
    again += static_cast<double>(round.again);
  }
  if (seconds <= 0 || busy <= 0 || typical <= 0) return std::nullopt;
  return LinkFinding{.factor = busy / typical,
                     .share = (busy - typical) / seconds,
                     .busy = busy / seconds,
                     .bytes_per_second = bytes / busy,
                     .again = segments > 0 ? again / segments : 0};
}

std::optional<LinkFinding> Links::finding_of(const Link& link) {
  const auto means = means_of(link);
  const bool found =
      means && link.series.slow() && means->factor >= kLeastFactor && means->share >= kLeastLinkShare;
  return found ? means : std::nullopt;
}

std::vector<LinkFinding> Links::findings() const {
  std::vector<LinkFinding> findings;
  for (std::size_t rank = 0; rank < senders_.size(); ++rank) {
    for (const auto& [to, link] : senders_[rank].links) {
      if (!link.told) continue;
      auto finding = means_of(link);
      finding->from = places_[rank];
      finding->to = places_[static_cast<std::size_t>(to)];
      findings.push_back(*finding);
    }
  }
  return findings;
}

}  // namespace paceline::stragglers
