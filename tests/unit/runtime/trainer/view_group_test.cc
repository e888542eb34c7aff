#include "runtime/trainer/view_group.h"

#include <gtest/gtest.h>

#include <string>

namespace paceline::trainer {
namespace {

v1::View view_of(std::initializer_list<const char*> members) {
  v1::View view;
  view.set_generation(3);
  for (const char* const member : members) view.add_members()->set_member_id(member);
  return view;
}

v1::Welcome welcome() {
  v1::Welcome welcome;
  welcome.set_link_key(std::string(32, 'k'));
  return welcome;
}

TEST(ViewGroupTest, MembersOfAViewHaveOneKey) {
  const v1::View view = view_of({"a", "b"});
  const auto one = group_of(view, "a", welcome()), other = group_of(view, "b", welcome());
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->key, other->key);
  EXPECT_EQ(one->rank, 0);
  EXPECT_EQ(other->rank, 1);
}

TEST(ViewGroupTest, AnotherViewOfTheSameGenerationHasAnotherKey) {
  const auto key_of = [](const v1::View& view) { return group_of(view, "a", welcome())->key; };
  const auto key = key_of(view_of({"a", "b"}));
  EXPECT_NE(key, key_of(view_of({"a", "c"})));
  EXPECT_NE(key, key_of(view_of({"b", "a"})));
  EXPECT_NE(key, key_of(view_of({"a"})));
  EXPECT_NE(key_of(view_of({"a", "b", "c"})), key_of(view_of({"a", "bc"})));
}

TEST(ViewGroupTest, AViewWithoutTheMemberOrAShortKeyIsRefused) {
  EXPECT_EQ(group_of(view_of({"b"}), "a", welcome()).status().code(), absl::StatusCode::kInvalidArgument);
  v1::Welcome wrong;
  wrong.set_link_key("short");
  EXPECT_EQ(group_of(view_of({"a"}), "a", wrong).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace paceline::trainer
