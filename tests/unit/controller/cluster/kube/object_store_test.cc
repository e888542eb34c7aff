#include "controller/cluster/kube/object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Thing {
  std::string key, job_key, uid, resource_version;
  bool operator==(const Thing&) const = default;
};

std::optional<Thing> decode(const Json& json) {
  const std::string& name = text_at(json, {"metadata", "name"});
  if (name.empty()) return std::nullopt;
  return Thing{"n/" + name, "n/" + text_at(json, {"job"}), text_at(json, {"metadata", "uid"}),
               text_at(json, {"metadata", "resourceVersion"})};
}

Json thing(const std::string& name, const std::string& job, const std::string& version,
           const std::string& uid = "u") {
  return {{"job", job}, {"metadata", {{"name", name}, {"uid", uid}, {"resourceVersion", version}}}};
}

class ObjectStoreTest : public ::testing::Test {
 protected:
  ObjectStore<Thing> store_{decode};
  ObjectSink::Keys take() { return std::exchange(changed_, {}); }
  std::vector<std::string> of_job(const std::string& job) {
    std::vector<std::string> keys;
    for (const auto& value : store_.of_job(job)) keys.push_back(value->key + " " + value->resource_version);
    return keys;
  }
  ObjectSink::Keys changed_;
};

TEST_F(ObjectStoreTest, FindsByKeyAndByJob) {
  store_.put(thing("b", "j", "1"), 1, changed_);
  store_.put(thing("a", "j", "2"), 1, changed_);
  store_.put(thing("c", "k", "3"), 1, changed_);
  EXPECT_THAT(of_job("n/j"), ElementsAre("n/a 2", "n/b 1"));
  EXPECT_THAT(of_job("n/nobody"), IsEmpty());
  EXPECT_EQ(store_.find("n/c")->resource_version, "3");
  EXPECT_EQ(store_.find("n/d"), nullptr);
  EXPECT_THAT(take(), ElementsAre("n/j", "n/j", "n/k"));
  EXPECT_EQ(store_.size(), 3u);
}

TEST_F(ObjectStoreTest, RepeatedObjectIsNoChange) {
  store_.put(thing("a", "j", "1"), 1, changed_);
  take();
  store_.put(thing("a", "j", "1"), 2, changed_);
  EXPECT_THAT(take(), IsEmpty());
  store_.put(thing("a", "j", "2"), 2, changed_);
  EXPECT_THAT(take(), ElementsAre("n/j"));
  store_.put(thing("a", "j", "2", "another"), 2, changed_);
  EXPECT_THAT(take(), ElementsAre("n/j"));
}

TEST_F(ObjectStoreTest, ASweepRemovesWhatTheListHasNot) {
  store_.put(thing("a", "j", "1"), 1, changed_);
  store_.put(thing("b", "j", "2"), 1, changed_);
  store_.put(thing("c", "k", "3"), 1, changed_);
  store_.sweep(1, "3", changed_);
  take();
  store_.put(thing("b", "j", "2"), 2, changed_);
  store_.sweep(2, "9", changed_);
  EXPECT_THAT(take(), ::testing::UnorderedElementsAre("n/j", "n/k"));
  EXPECT_THAT(of_job("n/j"), ElementsAre("n/b 2"));
  EXPECT_THAT(store_.job_keys(), ElementsAre("n/j"));
  store_.sweep(2, "9", changed_);
  EXPECT_THAT(take(), IsEmpty()) << "exactly once";
}

TEST_F(ObjectStoreTest, ADeletionIsToldOnce) {
  store_.put(thing("a", "j", "1"), 1, changed_);
  take();
  store_.remove(thing("a", "j", "2"), changed_);
  EXPECT_THAT(take(), ElementsAre("n/j"));
  store_.remove(thing("a", "j", "2"), changed_);
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_THAT(store_.job_keys(), IsEmpty());
}

TEST_F(ObjectStoreTest, AnObjectThatChangesItsJobIsToldToBoth) {
  store_.put(thing("a", "j", "1"), 1, changed_);
  take();
  store_.put(thing("a", "k", "2"), 1, changed_);
  EXPECT_THAT(take(), ElementsAre("n/j", "n/k"));
  EXPECT_THAT(of_job("n/j"), IsEmpty());
  EXPECT_THAT(of_job("n/k"), ElementsAre("n/a 2"));
}

TEST_F(ObjectStoreTest, OfferedObjectIsSeenBeforeTheWatchBringsIt) {
  store_.sweep(1, "10", changed_);
  store_.offer(thing("a", "j", "11"));
  EXPECT_THAT(of_job("n/j"), ElementsAre("n/a 11"));
  store_.put(thing("a", "j", "11"), 1, changed_);
  store_.put(thing("a", "j", "12"), 1, changed_);
  store_.offer(thing("a", "j", "11"));
  EXPECT_THAT(of_job("n/j"), ElementsAre("n/a 12"));
}

TEST_F(ObjectStoreTest, OfferDoesNotBringBackARemovedObject) {
  store_.sweep(1, "10", changed_);
  store_.put(thing("a", "j", "11"), 1, changed_);
  store_.remove(thing("a", "j", "12"), changed_);
  store_.offer(thing("a", "j", "11"));
  EXPECT_EQ(store_.size(), 0u);
  store_.offer(thing("b", "j", "not a number"));
  EXPECT_EQ(store_.size(), 0u);
}

TEST_F(ObjectStoreTest, AListThatBeganBeforeOurWriteDoesNotUndoIt) {
  store_.put(thing("a", "j", "5"), 1, changed_);
  store_.sweep(1, "10", changed_);
  store_.begin(2, "12");  // its pages come slowly
  store_.offer(thing("a", "j", "13"));
  store_.offer(thing("made", "j", "14"));
  take();
  store_.put(thing("a", "j", "5"), 2, changed_);
  store_.sweep(2, "12", changed_);
  EXPECT_THAT(of_job("n/j"), ElementsAre("n/a 13", "n/made 14"));
  EXPECT_THAT(take(), IsEmpty());
  store_.put(thing("a", "j", "13"), 2, changed_);  // the watch from there on
  store_.put(thing("made", "j", "14"), 2, changed_);
  store_.put(thing("a", "j", "15"), 2, changed_);
  store_.remove(thing("made", "j", "16"), changed_);
  EXPECT_THAT(of_job("n/j"), ElementsAre("n/a 15"));
}

TEST_F(ObjectStoreTest, ObjectMissingFromANewerListIsGone) {
  store_.sweep(1, "10", changed_);
  store_.offer(thing("a", "j", "11"));
  store_.begin(2, "20");
  store_.offer(thing("b", "j", "12"));  // made and gone before the list
  store_.sweep(2, "20", changed_);
  EXPECT_EQ(store_.size(), 0u);
  EXPECT_THAT(take(), ElementsAre("n/j"));
}

TEST_F(ObjectStoreTest, EventsFromBeforeOurWriteDoNotUndoIt) {
  store_.put(thing("a", "j", "1"), 1, changed_);
  store_.sweep(1, "1", changed_);
  store_.offer(thing("a", "j", "5"));
  take();
  store_.put(thing("a", "j", "3"), 1, changed_);
  EXPECT_THAT(of_job("n/j"), ElementsAre("n/a 5"));
  EXPECT_THAT(take(), IsEmpty());
  store_.remove(thing("a", "j", "4", "the one before"), changed_);
  EXPECT_THAT(of_job("n/j"), ElementsAre("n/a 5")) << "made again under its name";
  store_.put(thing("a", "j", "5"), 1, changed_);
  store_.put(thing("a", "j", "4"), 1, changed_);
  EXPECT_THAT(of_job("n/j"), ElementsAre("n/a 4")) << "what the watch brought last is right";
}

TEST_F(ObjectStoreTest, ARestoredServersListIsRight) {
  store_.put(thing("a", "j", "100"), 1, changed_);
  store_.sweep(1, "100", changed_);
  store_.offer(thing("a", "j", "101"));
  store_.offer(thing("b", "j", "102"));
  store_.begin(2, "50");
  store_.put(thing("a", "j", "40"), 2, changed_);
  store_.sweep(2, "50", changed_);
  EXPECT_THAT(of_job("n/j"), ElementsAre("n/a 40"));
  store_.offer(thing("c", "j", "51"));
  EXPECT_THAT(of_job("n/j"), ElementsAre("n/a 40", "n/c 51"));
}

TEST_F(ObjectStoreTest, MalformedObjectIsLeftOut) {
  store_.put(Json::object(), 1, changed_);
  store_.put(Json(7), 1, changed_);
  store_.remove(Json::array(), changed_);
  store_.offer(Json());
  EXPECT_EQ(store_.size(), 0u);
  EXPECT_THAT(take(), IsEmpty());
}

}  // namespace
}  // namespace paceline::kube
