#include "controller/certificates/authority_secret.h"

#include <gtest/gtest.h>

#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace paceline::certificates {
namespace {

class AuthoritySecretTest : public ::testing::Test {
 protected:
  absl::StatusOr<KeyPair> find() { return find_or_make_authority(api_, "system", "authority", now_); }

  FakeClock clock_;
  FakeApiServer server_;
  kube::ApiClient api_{server_, clock_, 1};
  WallTime now_{std::chrono::seconds(1'800'000'000)};
};

TEST_F(AuthoritySecretTest, AllReplicasGetTheSameOne) {
  const auto first = find();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(kube::text_at(*server_.find("secrets", "system", "authority"), {"type"}), "kubernetes.io/tls");
  const auto second = find();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->certificate_pem, first->certificate_pem);
  EXPECT_EQ(second->key_pem, first->key_pem);
}

TEST_F(AuthoritySecretTest, AReplicaThatIsSlowerTakesTheOthers) {
  bool first = true;
  server_.set_faults([&](const kube::Request& request) {
    FakeApiServer::Fault fault;
    if (request.method == kube::Method::kGet && std::exchange(first, false))
      fault.answer =
          kube::Response{.status = 404, .body = R"({"kind":"Status","reason":"NotFound","code":404})"};
    return fault;
  });
  first = false;
  const auto theirs = find();
  first = true;
  const auto ours = find();
  ASSERT_TRUE(ours.ok()) << ours.status();
  EXPECT_EQ(ours->key_pem, theirs->key_pem);
}

TEST_F(AuthoritySecretTest, OneThatIsOverOrIsNoneIsToldOf) {
  ASSERT_TRUE(find().ok());
  now_ += kAuthorityValid;
  EXPECT_TRUE(absl::IsFailedPrecondition(find().status()));
  server_.change("secrets", "system", "authority", [](kube::Json& secret) {
    secret["data"] = {{"tls.crt", "AAAA"}};
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(find().status()));
}

}  // namespace
}  // namespace paceline::certificates
