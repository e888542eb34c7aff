#include "controller/dashboard/sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/text.h"

namespace paceline::dashboard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimePoint kOpened{std::chrono::hours(100)};

TEST(SessionsTest, TokensOpenOneSession) {
  Sessions sessions;
  sessions.add_token("token");
  EXPECT_EQ(sessions.open("other", {"c", "w"}, kOpened), nullptr);
  EXPECT_EQ(sessions.open("", {"c", "w"}, kOpened), nullptr);
  const Sessions::Session* const session = sessions.open("token", {"cookie", "word"}, kOpened);
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->csrf, "word");
  EXPECT_EQ(sessions.open("token", {"c", "w"}, kOpened), nullptr) << "it was used";
}

TEST(SessionsTest, SessionsAreOfACookieAndItsWord) {
  Sessions sessions;
  for (const char* name : {"a", "b"}) {
    sessions.add_token(name);
    ASSERT_NE(sessions.open(name, {str_cat("cookie-", name), str_cat("word-", name)}, kOpened), nullptr);
  }
  EXPECT_TRUE(sessions.use("cookie-a", "word-a", kOpened));
  EXPECT_TRUE(sessions.use("cookie-b", "word-b", kOpened));
  for (const auto& [cookie, word] : {std::pair{"cookie-a", ""},
                                     {"", "word-a"},
                                     {"", ""},
                                     {"cookie-a", "word-b"},
                                     {"word-a", "cookie-a"},
                                     {"cookie-a", "word-A"}})
    EXPECT_FALSE(sessions.use(cookie, word, kOpened)) << cookie << " " << word;
}

TEST(SessionsTest, TokensAndSessionsAreBounded) {
  Sessions sessions;
  for (std::size_t i = 0; i < 3 * Sessions::kTokens; ++i) sessions.add_token(std::to_string(i));
  EXPECT_EQ(sessions.open("0", {"c", "w"}, kOpened), nullptr);
  const std::size_t last = 3 * Sessions::kTokens - 1;
  EXPECT_NE(sessions.open(std::to_string(last), {"first", "w"}, kOpened), nullptr);
  for (std::size_t i = 0; i < 2 * Sessions::kSessions; ++i) {
    sessions.add_token("t");
    ASSERT_NE(sessions.open("t", {"cookie" + std::to_string(i), "w"}, kOpened), nullptr);
    EXPECT_TRUE(sessions.use("first", "w", kOpened)) << "one that is used stays";
  }
  EXPECT_FALSE(sessions.use("cookie0", "w", kOpened));
}

TEST(SessionsTest, SessionThatIsNotUsedEnds) {
  Sessions sessions;
  for (const char* token : {"a", "b"}) sessions.add_token(token);
  ASSERT_NE(sessions.open("a", {"used", "w"}, kOpened), nullptr);
  ASSERT_NE(sessions.open("b", {"idle", "w"}, kOpened), nullptr);
  const TimePoint later = kOpened + Sessions::kUnused - std::chrono::seconds(1);
  EXPECT_TRUE(sessions.use("used", "w", later));
  EXPECT_TRUE(sessions.use("idle", "w", TimePoint())) << "it is there, and is not used by that";
  EXPECT_TRUE(sessions.use("used", "w", later + std::chrono::seconds(1)));
  EXPECT_FALSE(sessions.use("idle", "w", later + std::chrono::seconds(1)));
  EXPECT_TRUE(sessions.use("used", "w", later + Sessions::kUnused));
  EXPECT_FALSE(sessions.use("used", "w", later + 2 * Sessions::kUnused));
}

TEST(SessionsTest, SecretsAreComparedWhole) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  for (const char* other : {"", "ab", "abcd", "abd", "bbc"}) EXPECT_FALSE(same_secret("abc", other)) << other;
}

TEST(SessionsTest, CookiesAreFoundByName) {
  EXPECT_THAT(cookies_named("a=1; session=x=y; b=2", "session"), ElementsAre("x=y"));
  EXPECT_THAT(cookies_named("session=1", "session"), ElementsAre("1"));
  EXPECT_THAT(cookies_named("xsession=1, session=2; session=3", "session"), ElementsAre("2", "3"));
  for (const char* header : {"", ";;;", "session", "session2=1", "=1"})
    EXPECT_THAT(cookies_named(header, "session"), IsEmpty()) << header;
  std::string many;
  for (std::size_t i = 0; i <= kMostCookies; ++i) many += "session=1;";
  EXPECT_EQ(cookies_named(many, "session").size(), kMostCookies);
}

}  // namespace
}  // namespace paceline::dashboard
