#include "controller/lease/kube_lease.h"

#include <gtest/gtest.h>

#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace paceline::lease {
namespace {

class KubeLeaseTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  FakeApiServer server_;
  kube::ApiClient api_{server_, clock_, 1};
  KubeLease lease_{api_, "paceline-system", "paceline-controller"};
};

TEST_F(KubeLeaseTest, CreatesReadsAndChanges) {
  ASSERT_TRUE(lease_.read().ok());
  EXPECT_FALSE(lease_.read()->has_value());
  LeaseRecord record{.holder = "a",
                     .duration_seconds = 15,
                     .acquired = WallTime(std::chrono::seconds(5)),
                     .renewed = WallTime(std::chrono::seconds(7)),
                     .transitions = 2,
                     .address = "10.0.0.7:7070"};
  const auto created = lease_.write({record, ""});
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->record, record);
  EXPECT_EQ(absl::StatusCode::kAlreadyExists, lease_.write({record, ""}).status().code());
  record.holder = record.address = "";
  const auto changed = lease_.write({record, created->version});
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_NE(changed->version, created->version);
  EXPECT_EQ((*lease_.read())->record, record);
  EXPECT_EQ(absl::StatusCode::kAborted, lease_.write({record, created->version}).status().code());
}

TEST_F(KubeLeaseTest, WhateverStandsThereIsRead) {
  EXPECT_EQ(seen_of(kube::Json::array()).record, LeaseRecord());
  EXPECT_EQ(
      seen_of({{"spec", {{"holderIdentity", 7}, {"leaseDurationSeconds", "x"}, {"renewTime", "y"}}}}).record,
      LeaseRecord());
  EXPECT_EQ(seen_of({{"spec", nullptr}, {"metadata", {{"resourceVersion", "8"}}}}).version, "8");
}

}  // namespace
}  // namespace paceline::lease
