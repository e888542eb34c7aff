#include "controller/diagnosis/peer_reports.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace paceline::diagnosis {

namespace {

struct Said {
  int reporters = 0;
  int explained = 0;     // reports that would not be without it
  bool reports = false;  // another one
};

Surroundings::Place place(const Surroundings& around, int slot) {
  const auto at = static_cast<std::size_t>(slot);
  return at < around.places.size() ? around.places[at] : Surroundings::Place();
}

std::pair<int, int> link(int one, int other) {
  return {std::min(one, other), std::max(one, other)};
}

}  // namespace

Suspect find_suspect(std::span<const PeerReport> reports, const Surroundings& around) {
  const auto serves = [&](int slot) { return place(around, slot).serves; };
  const auto trains = [&](int slot) { return place(around, slot).trains; };
  std::vector<std::pair<int, int>> broken;
  std::set<int> missed;  // by a server
  for (const PeerReport& r : reports) {
    broken.push_back(link(r.reporter, r.peer));
    if (serves(r.reporter)) missed.insert(r.peer);
  }
  std::ranges::sort(broken);
  broken.erase(std::unique(broken.begin(), broken.end()), broken.end());
  std::map<int, int> unreached;  // by server: who trains and has no link with it
  for (const auto& [one, other] : broken) {
    if (trains(one)) ++unreached[other];
    if (trains(other)) ++unreached[one];
  }
  const auto trainers = std::ranges::count_if(around.places, &Surroundings::Place::trains);
  std::map<int, Said> said;
  for (const PeerReport& r : reports) {
    ++said[r.peer].reporters;
    ++said[r.peer].explained;
    Said& own = said[r.reporter];
    own.reports = true;
    const bool cut_off = around.servers_work || missed.contains(r.reporter);
    const bool knows_less = place(around, r.reporter).fresh && !place(around, r.peer).fresh;
    if (serves(r.reporter) || (serves(r.peer) && cut_off) || knows_less) ++own.explained;
  }
  const auto is_reached = [&](int server) { return around.servers_work || unreached[server] < trainers; };
  using Rank = std::tuple<bool, int, bool, bool, int>;  // the largest is the root cause
  Rank best{};
  int most_reached = 0;  // explained by a server that somebody reaches
  for (const auto& [slot, about] : said) {
    if (about.explained == 0) continue;
    const bool reached = serves(slot) && is_reached(slot);
    if (reached) most_reached = std::max(most_reached, about.explained);
    best = std::max(best, Rank{!reached, about.explained, place(around, slot).fresh, !about.reports, slot});
  }
  const auto [suspected, explained, fresh, silent, slot] = best;
  const bool by_own_word = fresh && said[slot].reporters == 0;
  const bool sure = around.servers_work || (suspected && explained > most_reached && !by_own_word);
  return {slot, said[slot].reporters, sure};
}

}  // namespace paceline::diagnosis
