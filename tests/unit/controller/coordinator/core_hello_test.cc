#include "controller/coordinator/core_hello.h"

#include <gtest/gtest.h>

namespace paceline::coordinator {
namespace {

TEST(CutTest, NeverSplitsACharacter) {
  EXPECT_EQ(cut("short"), "short");
  EXPECT_EQ(cut("abcdef", 3), "abc");
  const std::string euros = "\xE2\x82\xAC\xE2\x82\xAC";  // two characters of three bytes
  const std::size_t kept[] = {0, 0, 0, 3, 3, 3, 6, 6};
  for (std::size_t limit = 0; limit < std::size(kept); ++limit) {
    EXPECT_EQ(cut(euros, limit), euros.substr(0, kept[limit])) << limit;
  }
  EXPECT_EQ(cut(std::string(kMaxTextBytes + 9, 'x')).size(), kMaxTextBytes);
}

TEST(HelloTest, MembersOfAnotherAttemptAreRefused) {
  CoreConfig config;
  config.job = "default/digits";
  config.roles = {{Role::kWorker, 2}};
  v1::Hello hello;
  hello.set_protocol_version(kProtocolVersion);
  hello.set_job("default/digits");
  hello.set_role(v1::ROLE_WORKER);
  hello.set_member_id("uid-1");
  hello.set_pod("digits-worker-0-11");
  hello.set_attempt(11);
  config.attempt = 11;
  EXPECT_EQ(hello_error(hello, config), "");
  config.attempt = 12;
  EXPECT_EQ(hello_error(hello, config), "pod digits-worker-0-11 is of attempt 11, and this is attempt 12");
}

TEST(HelloTest, MembersThatDoNotKnowTlsAreRefusedWhereLinksAreEncrypted) {
  const auto is_refused = [](bool encrypts, v1::RoleKind role, bool speaks_tls) {
    CoreConfig config;
    config.job = "default/digits";
    config.roles = {{Role::kWorker, 1}, {Role::kServer, 1}, {Role::kEvaluator, 1}};
    config.training.set_encrypts_links(encrypts);
    v1::Hello hello;
    hello.set_protocol_version(kProtocolVersion);
    hello.set_job("default/digits");
    hello.set_role(role);
    hello.set_member_id("uid-1");
    hello.set_speaks_tls(speaks_tls);
    return !hello_error(hello, config).empty();
  };
  for (const v1::RoleKind role : {v1::ROLE_WORKER, v1::ROLE_PS}) {
    EXPECT_TRUE(is_refused(true, role, false)) << role;
    EXPECT_FALSE(is_refused(true, role, true)) << role;
    EXPECT_FALSE(is_refused(false, role, false)) << role;
  }
  EXPECT_FALSE(is_refused(true, v1::ROLE_EVALUATOR, false)) << "it has no links";
}

TEST(HelloTest, AMemberOfALaterAttemptIsTold) {
  const auto is_later = [](std::int64_t theirs, std::int64_t ours, v1::RoleKind role = v1::ROLE_WORKER) {
    CoreConfig config;
    config.attempt = ours;
    v1::Hello hello;
    hello.set_role(role);
    hello.set_attempt(theirs);
    return is_of_later_attempt(hello, config);
  };
  EXPECT_TRUE(is_later(10, 9));
  EXPECT_FALSE(is_later(9, 9));
  EXPECT_FALSE(is_later(9, 10));
  EXPECT_FALSE(is_later(10, 9, v1::ROLE_EVALUATOR)) << "it has attempts of its own";
}

}  // namespace
}  // namespace paceline::coordinator
