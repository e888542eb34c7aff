#pragma once

// Which member is cut off, when all are alive and talk to the coordinator but members have lost each other.
// Pure.
//
// A report is one member's word about another, and what it tells depends on what lies between the two.
//   - Around a ring, or between two that train with servers, it is a word against the one it names: who waits
//     there waits for a neighbour that may wait itself, or has been told by a server who is late.
//   - A server reports nothing but connections that broke. A connection has two ends, either of which may be
//     the one that is cut off: the word is against both.
//   - Who trains reports a server that is gone as well as one that hangs, which loses nobody. So its word is
//     against the server, and against itself once a server has missed it, or the others go on with all
//     servers.
// The root cause is the member that explains the most reports: without it they would not be. A server that
// somebody who trains still reaches, which is nobody's report between the two, comes after all others; of one
// link that broke, and no other, it is hence the end that trains. Nobody can tell which of the two it was,
// but one of those who train can be spared more often, and nothing of the weights is lost with it. A fresh
// member's word about one that is not is against itself, too, since the state is lost with the other. Of a
// draw: a fresh one, then one that reports nobody itself, then the last.

#include <span>
#include <string>
#include <vector>

namespace paceline::diagnosis {

// Slots number the expected members: chief, workers, servers, each by index.
struct PeerReport {
  int reporter = 0, peer = 0;  // slots
  std::string reason = {};
};

// All that is known of the members beside their reports.
struct Surroundings {
  struct Place {
    bool serves = false;
    bool trains = false;  // and is attached
    bool fresh = false;   // it has just joined a ring, and applied no step yet
  };
  std::vector<Place> places;  // by slot; those beyond neither serve nor train
  // Somebody who reported nothing has applied steps since the reports came, which takes all servers.
  bool servers_work = false;
};

struct Suspect {
  int slot = 0;
  int reporters = 0;  // that name it
  // False: a server explains as much, but for somebody who still reaches it, or has not said yet that it does
  // not; or a fresh member is suspected by its own word alone. Two ends of a cut link notice within seconds
  // of each other: their words are worth waiting for.
  bool sure = true;
};

// REQUIRES: there is a report, and nobody reports itself. O(n log n) in the reports.
Suspect find_suspect(std::span<const PeerReport> reports, const Surroundings& around);

}  // namespace paceline::diagnosis
