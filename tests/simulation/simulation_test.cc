// A fixed set of seeds, those that found something among them, and a fresh one.

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "tests/simulation/world.h"

namespace paceline::simulation {
namespace {

constexpr std::uint64_t kFixedSeeds = 100, kFreshSeeds = 20;

// Seeds that found a bug, each with what it was.
constexpr std::uint64_t kFound[] = {
    14,    // rank 0 died when the others had finished, and a view of minReplicas was waited for without end
    405,   // the same, where a new coordinator hears of the others' end by their pods
    827,   // the same, with the chief
    1729,  // a deleted pod was gone when it was judged, and its exit as told was called permanent
    1957,  // a member that came back behind the next view was never taken in
    2356,  // a controller ended when it had deleted pods of a finished job, and before it had said so
    4767,  // members finished in a view of which the status never told: their end was taken for a failure
    6864,  // places of a resized ring went in its middle: the controller crashed, or the others waited
           // without end
    8635,  // a clock was set back, and a back-off lasted for half an hour
    500008364,  // a member froze as its controller ended: nobody missed it, and the others waited without end
    500018246,  // streams of one member crossed in the network, and the one that it went by told it to end
    600001103,  // one that gave the state froze, and with it went that of those who held the same
    700004704,  // of two that could take a place a new coordinator chose the one without a state
    600027943,  // a controller ended whose status told of no training: those that stood by began anew beside
                // the others
    600000348,  // a member that stood by was given another view of a generation that it knew, and waited
                // without end
    600004400,  // a job was made smaller that had lost members for good: who was left waited without end
    838378335,  // a controller stood still while members were to end their view: they were blamed for it
    3090435547,  // the same
    3090428611,  // a member hung as its view was to end, and those who waited for it were given up first
    3090429397,  // the same
    3090435256,  // the same
    3090425421,  // members ended well while the network was slow: one was replaced before its stream had
                 // ended
    3090434607,  // the only member that held the state stood by, and the next view was formed without it
    900012188,   // the only member of a view hung in a step of the view before, and nobody missed it
    1100003128,  // the same
    1300003445,  // the same
    1000021463,  // reports came as a new coordinator gathered a view: it went on, though its members waited
    1200002303,  // a view of a ring that is to be whole was formed without a member that had just begun
    1300008573,  // the same
    1600006622,  // a member's end in the view before was taken for rank 0's in the next one
    3200067343,  // the same, where its goodbye was lost and its process ended well
    3500009094,  // the same
    3200016416,  // a controller stood still: those that train had no time to come back beside who stood by
    3200009828,  // a deleted pod was made again under its name: its end was taken for a permanent exit
    3300021332,  // a member froze before it had joined beside a view that ran: nobody missed it
    3500004266,  // a member that came again was given its view anew, without those that had finished in it
    3500000341,  // members trained to the end without a controller: the next one took their end for a failure
    5200037066,  // of members of several earlier views a new coordinator chose those that held no state
    617,         // a ring had become one member, which was slow: its successor began without its state
    1393,        // the same
    2633,        // a successor had joined before its node was told: its pod was taken for one without room
    3402,        // the same
    40241,       // a handover was carried out as it was given up: the successor was ended, and the place lost
    30850,       // a handover was given up, and a new coordinator let the successor have the place after all
    3700014292,  // who trained came to a new coordinator for a moment, done: those who stood by began anew
    5400018214,  // the same
    8100004018,  // an earlier coordinator had handed a place over: the end of who had it counted as a loss
    8200010345,  // a successor had the room of a member for which all waited, its own handover with them
    8100010289,  // the end of a successor that was given up counted as that of the one in its place
};

Outcome run(std::uint64_t seed) {
  Outcome outcome = World(seed, false).run();
  std::string trace;
  if (outcome.failure) {
    for (const std::string& line : outcome.trace) trace += line + "\n";
  }
  EXPECT_FALSE(outcome.failure) << trace << "seed " << seed << " (scripts/simulate --seed " << seed
                                << " --trace): " << *outcome.failure;
  return outcome;
}

struct Answers {
  int handovers = 0, shares_set = 0;
};
Answers run_all(std::uint64_t from, std::uint64_t count) {
  std::uint64_t events = 0;
  Answers answers;
  for (std::uint64_t seed = from; seed < from + count && !testing::Test::HasFailure(); ++seed) {
    const Outcome outcome = run(seed);
    events += outcome.events;
    answers.handovers += outcome.handovers.done;
    answers.shares_set += outcome.shares_set;
  }
  std::printf("%llu seeds from %llu: %llu events, %d handovers, shares set %d times\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(from),
              static_cast<unsigned long long>(events), answers.handovers, answers.shares_set);
  return answers;
}

TEST(Simulation, SeedsThatFoundABugPass) {
  for (const std::uint64_t seed : kFound) run(seed);
}

TEST(Simulation, AFixedSetOfSeedsPasses) {
  const Answers answers = run_all(1, kFixedSeeds);
  EXPECT_GE(answers.handovers, 5) << "slow members are found, and replaced";
  EXPECT_GE(answers.shares_set, 1) << "or have fewer samples";
}

TEST(Simulation, AFreshSetOfSeedsPasses) {
  run_all(std::random_device{}(), kFreshSeeds);
}

TEST(Simulation, OneSeedIsOneStory) {
  for (const std::uint64_t seed : {3, 11, 19}) {
    const Outcome one = World(seed, false).run(), again = World(seed, false).run();
    EXPECT_EQ(one.trace, again.trace);
    EXPECT_EQ(one.events, again.events);
  }
}

}  // namespace
}  // namespace paceline::simulation
