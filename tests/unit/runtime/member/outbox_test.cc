#include "runtime/member/outbox.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace paceline::member {
namespace {

AppliedStep applied(Step number) {
  AppliedStep applied;
  applied.step = number;
  applied.has_loss = true;
  return applied;
}

std::vector<Step> records(const v1::Heartbeat& heartbeat) {
  std::vector<Step> steps;
  for (const v1::StepRecord& record : heartbeat.records()) steps.push_back(record.step());
  return steps;
}

TEST(HeartbeatsTest, ARecordComesAgainUntilItIsTaken) {
  Progress progress;
  Heartbeats heartbeats(progress);
  EXPECT_EQ(heartbeats.number(), 0u);
  progress.step_applied(applied(1));
  EXPECT_EQ(records(heartbeats.next(0)), std::vector<Step>{1});
  EXPECT_EQ(heartbeats.number(), 1u);
  progress.step_applied(applied(2));
  EXPECT_EQ(records(heartbeats.next(0)), std::vector<Step>{1}) << "not taken";
  EXPECT_EQ(heartbeats.number(), 1u);
  EXPECT_EQ(records(heartbeats.next(1)), std::vector<Step>{2});
  EXPECT_EQ(heartbeats.number(), 2u);
  progress.step_applied(applied(3));
  EXPECT_EQ(records(heartbeats.newest()), std::vector<Step>{3}) << "a goodbye does not wait";
  EXPECT_EQ(heartbeats.number(), 3u);
}

v1::MemberMessage report(Step number) {
  v1::MemberMessage message;
  message.mutable_checkpoint()->set_step(number);
  return message;
}

// The steps of those that are to be sent, in order; sends them.
std::string send_all(Reports& reports, std::uint64_t last_heartbeat) {
  std::string sent;
  while (const v1::MemberMessage* next = reports.next()) {
    sent += str_cat(next->checkpoint().step(), " ");
    reports.sent(last_heartbeat);
  }
  return sent;
}

TEST(ReportsTest, TheNextStreamCarriesWhatNoLaterHeartbeatVouchesFor) {
  Reports reports;
  reports.add(report(1));
  reports.add(report(2));
  EXPECT_EQ(send_all(reports, 7), "1 2 ");
  reports.add(report(3));
  EXPECT_EQ(send_all(reports, 8), "3 ");
  reports.taken(7);  // it went out before them
  reports.new_stream();
  EXPECT_EQ(send_all(reports, 8), "1 2 3 ");
  reports.taken(8);
  reports.new_stream();
  EXPECT_EQ(send_all(reports, 8), "1 2 3 ");
  reports.add(report(4));
  EXPECT_EQ(send_all(reports, 9), "4 ");
  reports.taken(9);  // first sent after 1 to 3
  reports.new_stream();
  EXPECT_EQ(send_all(reports, 9), "4 ");
}

TEST(ReportsTest, OneThatWasNotSentIsNotTaken) {
  Reports reports;
  reports.add(report(1));
  reports.taken(100);
  EXPECT_EQ(send_all(reports, 100), "1 ");
}

// Of the first kind and of the second, how many are to be sent; sends them.
std::pair<std::size_t, std::size_t> count_all(Reports& reports) {
  std::pair<std::size_t, std::size_t> counts;
  for (; const v1::MemberMessage* next = reports.next(); reports.sent(1))
    ++(next->has_peer_fault() ? counts.first : counts.second);
  return counts;
}

// A server whose network is cut loses its links to all workers of the largest job at once.
TEST(ReportsTest, FaultsAndOthersAreBoundedEachByThemselves) {
  Reports reports;
  v1::MemberMessage fault;
  fault.mutable_peer_fault();
  const std::pair most{std::size_t{1024}, std::size_t{64}};
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < 10 + 1024; ++i) {
      reports.add(report(static_cast<Step>(i)));
      reports.add(fault);
    }
    EXPECT_EQ(count_all(reports), most);
    reports.taken(2);  // makes room for as many
    EXPECT_EQ(count_all(reports).first, 0u);
  }
}

}  // namespace
}  // namespace paceline::member
