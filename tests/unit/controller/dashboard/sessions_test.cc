#include "controller/dashboard/sessions.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/text.h"

namespace paceline::dashboard {
namespace {

TEST(SessionsTest, TokensOpenOneSession) {
  Sessions sessions;
  sessions.add_token("token");
  EXPECT_EQ(sessions.open("other", {"c", "w"}), nullptr);
  EXPECT_EQ(sessions.open("", {"c", "w"}), nullptr);
  const Sessions::Session* const session = sessions.open("token", {"cookie", "word"});
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->csrf, "word");
  EXPECT_EQ(sessions.open("token", {"c", "w"}), nullptr) << "it was used";
}

TEST(SessionsTest, SessionsAreOfACookieAndItsWord) {
  Sessions sessions;
  for (const char* name : {"a", "b"}) {
    sessions.add_token(name);
    ASSERT_NE(sessions.open(name, {str_cat("cookie-", name), str_cat("word-", name)}), nullptr);
  }
  EXPECT_TRUE(sessions.use("cookie-a", "word-a"));
  EXPECT_TRUE(sessions.use("cookie-b", "word-b"));
  for (const auto& [cookie, word] : {std::pair{"cookie-a", ""},
                                     {"", "word-a"},
                                     {"", ""},
                                     {"cookie-a", "word-b"},
                                     {"word-a", "cookie-a"},
                                     {"cookie-a", "word-A"}})
    EXPECT_FALSE(sessions.use(cookie, word)) << cookie << " " << word;
}

TEST(SessionsTest, TokensAndSessionsAreBounded) {
  Sessions sessions;
  for (std::size_t i = 0; i < 3 * Sessions::kTokens; ++i) sessions.add_token(std::to_string(i));
  EXPECT_EQ(sessions.open("0", {"c", "w"}), nullptr);
  const std::size_t last = 3 * Sessions::kTokens - 1;
  EXPECT_NE(sessions.open(std::to_string(last), {"first", "w"}), nullptr);
  for (std::size_t i = 0; i < 2 * Sessions::kSessions; ++i) {
    sessions.add_token("t");
    ASSERT_NE(sessions.open("t", {"cookie" + std::to_string(i), "w"}), nullptr);
    EXPECT_TRUE(sessions.use("first", "w")) << "one that is used stays";
  }
  EXPECT_FALSE(sessions.use("cookie0", "w"));
}

TEST(SessionsTest, SecretsAreComparedWhole) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  for (const char* other : {"", "ab", "abcd", "abd", "bbc"}) EXPECT_FALSE(same_secret("abc", other)) << other;
}

TEST(SessionsTest, CookiesAreFoundByName) {
  EXPECT_EQ(cookie_named("a=1; session=x=y; b=2", "session"), "x=y");
  EXPECT_EQ(cookie_named("session=1", "session"), "1");
  EXPECT_EQ(cookie_named("xsession=1, session=2", "session"), "2");
  for (const char* header : {"", ";;;", "session", "session2=1", "=1"})
    EXPECT_EQ(cookie_named(header, "session"), "") << header;
}

}  // namespace
}  // namespace paceline::dashboard
