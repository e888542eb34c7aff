#pragma once

// Which link of a view's members holds them back, from what the kernels of those that send count. Pure;
// docs/stragglers.md tells how it decides.
//
// A link is one direction between two members. In an exchange all wait for its slowest link, so the time of
// the exchange tells nothing of it; but the sender's kernel measures the rate of each link while there is
// something to send. The rate is compared with the median of all other links, round by round: a round is over
// when all who send have told once more. The test over the rounds is that of the members' times (series.h). A
// link is found when the test says so and all of this holds for the last kRounds rounds, and it stays so
// until the test is back where it began:
// - it takes kLeastFactor times as long for a byte as the others, or more;
// - it costs kLeastLinkShare of the time: its bytes take so much longer at its rate than at the others'.
// A link that moves less than kLeastBytes in a round is not judged in it.
//
// A receiver that waits for its slowest link acknowledges late what has come on its others, so that their
// rates fall, too. So one link into each member is told of at a time, and none that is not the slowest then.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "controller/stragglers/series.h"

namespace paceline::stragglers {

inline constexpr std::size_t kRounds = 8;
inline constexpr double kLeastFactor = 1.5;
inline constexpr double kLeastLinkShare = 0.1;
inline constexpr std::uint64_t kLeastBytes = 64 << 10;

// Counts are since the link was made.
struct LinkCount {
  int to = 0;  // the peer's rank
  std::uint64_t bytes = 0;
  double rate = 0;  // bytes a second while it has something to send
  std::uint64_t segments = 0, segments_again = 0;
};

// Means over the last kRounds rounds.
struct LinkFinding {
  int from = 0, to = 0;         // places
  double factor = 1;            // its time for a byte over the others' median
  double share = 0;             // of the time is lost to it
  double busy = 0;              // the share of the time that its bytes take at its rate
  double bytes_per_second = 0;  // its rate
  double again = 0;             // the share of its segments that were sent once more
};

class Links {
 public:
  // `places`: of the members, by rank. Nothing stays of the view before.
  void begin_view(std::span<const int> places);
  // The counts of all links on which `rank` sends; `at`: on its own clock, rising.
  void add(int rank, Duration at, std::span<const LinkCount> counts);
  // By place.
  std::vector<LinkFinding> findings() const;

 private:
  // A link between two of a member's words.
  struct Round {
    double seconds = 0, rate = 0;
    std::uint64_t bytes = 0, segments = 0, again = 0;
    double cost() const { return 1 / rate; }  // seconds for a byte
  };
  struct Link {
    LinkCount last;
    Round round;  // the newest
    Noise noise;
    Series series{kLarge};
    std::array<Round, kRounds> rounds{};
    std::array<double, kRounds> typical{};  // of the others in that round: seconds for a byte
    std::size_t count = 0;                  // rounds that were judged
    bool told = false;
  };
  struct Sender {
    std::optional<Duration> at;
    bool fresh = false;
    std::map<int, Link> links;  // by the peer's rank
  };
  void judge();
  void choose();
  // It is nothing while the link was judged in fewer rounds.
  static std::optional<LinkFinding> means_of(const Link& link);
  static std::optional<LinkFinding> finding_of(const Link& link);

  std::vector<int> places_;
  std::vector<Sender> senders_;  // by rank
};

}  // namespace paceline::stragglers
