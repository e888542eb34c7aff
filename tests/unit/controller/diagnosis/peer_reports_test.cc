#include "controller/diagnosis/peer_reports.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/text.h"

namespace paceline::diagnosis {
namespace {

// Workers, then servers, as slots are numbered.
Surroundings job_of(int workers, int servers) {
  Surroundings around;
  for (int w = 0; w < workers; ++w) around.places.push_back({.serves = false, .trains = true});
  for (int s = 0; s < servers; ++s) around.places.push_back({.serves = true, .trains = false});
  return around;
}

TEST(PeerReportsTest, AMemberThatHasJustJoinedIsSuspectedBeforeOneThatHoldsTheState) {
  Surroundings around = job_of(3, 0);
  around.places[0].fresh = true;
  EXPECT_EQ(find_suspect(std::vector<PeerReport>{{0, 2}}, around).slot, 0);
  EXPECT_EQ(find_suspect(std::vector<PeerReport>{{0, 2}, {2, 0}}, around).slot, 0);
  EXPECT_EQ(find_suspect(std::vector<PeerReport>{{0, 2}, {1, 2}}, around).slot, 2) << "two say so";
  around.places[2].fresh = true;
  EXPECT_EQ(find_suspect(std::vector<PeerReport>{{0, 2}}, around).slot, 2) << "neither holds one";
}

TEST(PeerReportsTest, TheMemberThatExplainsMostReportsIsSuspected) {
  // With three workers, 0 to 2, the servers are 3 and 4.
  struct Case {
    const char* what;
    int workers, servers;
    std::vector<PeerReport> reports;
    int slot;
    bool sure;
    bool servers_work = false;
  };
  const Case cases[] = {
      {"a worker misses a server, nobody else does", 3, 2, {{1, 3}}, 3, false},
      {"and the others go on", 3, 2, {{1, 3}}, 1, true, true},
      {"a worker and all servers", 3, 2, {{1, 3}, {3, 1}, {4, 1}}, 1, true},
      {"the server that it named has said nothing yet", 3, 2, {{1, 3}, {4, 1}}, 1, true},
      {"the servers alone", 3, 2, {{3, 1}, {4, 1}}, 1, true},
      {"one link: the end that trains", 3, 2, {{1, 3}, {3, 1}}, 1, false},
      {"one link, by its server's word alone", 3, 2, {{4, 2}}, 2, false},
      {"one link, and the others go on", 3, 2, {{4, 2}}, 2, true, true},
      {"all servers there are, which is one", 3, 1, {{1, 3}, {3, 1}}, 1, false},
      {"a server that all have lost", 3, 2, {{0, 4}, {1, 4}, {4, 2}}, 4, true},
      {"a server, but for a worker that has said nothing yet", 3, 2, {{0, 4}, {1, 4}, {3, 4}}, 4, false},
      {"a server that hangs and misses nobody", 3, 2, {{0, 4}}, 4, false},
      {"a server that has lost all who train, it says", 3, 2, {{4, 0}, {4, 1}, {4, 2}}, 4, true},
      {"two workers of one node", 3, 1, {{1, 3}, {2, 3}, {3, 1}, {3, 2}}, 2, false},
      {"two workers of one node, and the third goes on", 3, 1, {{1, 3}, {2, 3}}, 2, true, true},
      {"the only worker: the server, as it says", 1, 1, {{0, 1}}, 1, true},
      {"the only worker that is left", 1, 2, {{0, 2}}, 2, true},
      {"who is late, as a server said", 3, 2, {{0, 2}}, 2, true},
      {"who is late, and was lost", 3, 2, {{0, 2}, {3, 2}, {2, 3}}, 2, true},
      {"a ring's neighbours, each other", 4, 0, {{0, 1}, {1, 0}}, 1, true},
      {"who waits for one who waits", 4, 0, {{0, 1}, {1, 2}, {2, 3}}, 3, true},
      {"most of a ring", 4, 0, {{0, 2}, {1, 2}, {2, 0}}, 2, true},
  };
  for (const Case& c : cases) {
    Surroundings around = job_of(c.workers, c.servers);
    around.servers_work = c.servers_work;
    const Suspect suspect = find_suspect(c.reports, around);
    EXPECT_EQ(suspect.slot, c.slot) << c.what;
    EXPECT_EQ(suspect.sure, c.sure) << c.what;
    EXPECT_EQ(suspect.reporters, std::count_if(c.reports.begin(), c.reports.end(),
                                               [&](const PeerReport& r) { return r.peer == c.slot; }))
        << c.what;
  }
}

// One member loses all its links. Whoever finds that first, and in whatever order the others do: nobody else
// is ever suspected for sure, and once all have said so it is that one.
TEST(PeerReportsTest, InNoOrderOfReportsAnotherMemberIsSuspectedForSure) {
  const std::uint64_t seed = 5;
  Rng rng(seed, 1);
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE(str_cat("seed ", seed, ", round ", round));
    const int workers = 2 + static_cast<int>(rng.below(4)), servers = 1 + static_cast<int>(rng.below(4));
    const int members = workers + servers;
    const int cut = static_cast<int>(rng.below(static_cast<std::uint64_t>(members)));
    std::vector<PeerReport> reports;
    const auto lost = [&](int server) {
      if (cut >= workers && server != workers && cut != workers) return;  // servers are linked with the first
      if (server == cut) return;
      reports.push_back({server, cut});
      if (cut >= workers) reports.push_back({cut, server});
    };
    for (int server = workers; server < members; ++server) lost(server);
    if (cut < workers) {  // who trains stops at the first
      reports.push_back({cut, workers + static_cast<int>(rng.below(static_cast<std::uint64_t>(servers)))});
    } else {
      for (int worker = 0; worker < workers; ++worker) {
        reports.push_back({worker, cut});
        reports.push_back({cut, worker});
      }
    }
    for (std::size_t k = reports.size(); k > 1; --k) std::swap(reports[k - 1], reports[rng.below(k)]);
    const Surroundings around = job_of(workers, servers);
    for (std::size_t said = 1; said <= reports.size(); ++said) {
      const std::vector<PeerReport> so_far(reports.begin(),
                                           reports.begin() + static_cast<std::ptrdiff_t>(said));
      const Suspect suspect = find_suspect(so_far, around);
      if (suspect.sure || said == reports.size()) {
        ASSERT_EQ(suspect.slot, cut) << workers << " workers, " << servers << " servers, report " << said;
      }
    }
  }
}

}  // namespace
}  // namespace paceline::diagnosis
