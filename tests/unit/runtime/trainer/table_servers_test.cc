// Sparse tables on real servers, over real links: what they make of a training is what the test's servers
// make of it, to the bit.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/pserver/client.h"
#include "runtime/pserver/server.h"
#include "runtime/trainer/server_member.h"
#include "runtime/trainer/table_specs.h"
#include "runtime/trainer/trainer.h"
#include "tests/support/click_model.h"
#include "tests/support/fake_servers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_job.h"

namespace paceline::trainer {
namespace {

// Workers, then servers, each with a fabric of its own.
class RealJob {
 public:
  explicit RealJob(const v1::TrainingSpec& spec) : workers_(spec.parameter_server().workers()) {
    v1::View view;
    view.set_generation(1);
    for (std::int64_t m = 0; m < workers_ + spec.parameter_server().servers(); ++m) {
      auto fabric = collective::Fabric::create({}, clock_);
      PL_CHECK(fabric.ok(), "a fabric");
      auto member = std::make_unique<Member>(str_cat("m", m), spec, *std::move(fabric));
      const collective::Address& address = member->fabric->address();
      v1::ViewMember& said = *view.add_members();
      said.set_member_id(str_cat("m", m));
      said.set_role(m < workers_ ? v1::ROLE_WORKER : v1::ROLE_PS);
      said.set_index(static_cast<std::uint32_t>(m < workers_ ? m : m - workers_));
      said.set_host_id(address.host_id);
      said.mutable_address()->set_local_socket(address.local_socket);
      for (const std::string& tcp : address.tcp) said.mutable_address()->add_tcp(tcp);
      members_.push_back(std::move(member));
    }
    for (const auto& member : members_) member->membership.send_view(view);
  }

  void run_to_the_end() {
    std::vector<std::jthread> servers;
    {
      std::vector<std::jthread> workers;
      for (std::size_t m = 0; m < members_.size(); ++m) {
        const bool works = m < static_cast<std::size_t>(workers_);
        (works ? workers : servers).emplace_back([this, works, member = members_[m].get()] {
          member->outcome = works ? work(*member) : serve(*member);
        });
      }
    }
    for (const auto& member : members_) member->membership.end(absl::CancelledError("the job is finished"));
    servers.clear();
    for (const auto& member : members_) {
      EXPECT_EQ(member->outcome.ending, Ending::kFinished) << member->outcome.error;
    }
  }
  v1::Heartbeat chiefs_heartbeat() {
    v1::Heartbeat beat;
    members_[0]->membership.progress().collect(&beat);
    return beat;
  }

 private:
  struct Member {
    Member(std::string id, const v1::TrainingSpec& spec, std::unique_ptr<collective::Fabric> links)
        : membership(std::move(id), spec), fabric(std::move(links)) {}
    ScriptedMembership membership;
    std::unique_ptr<collective::Fabric> fabric;
    StopRequest stop;
    std::unique_ptr<ServerMember> server;
    Outcome outcome;
  };
  Outcome work(Member& member) {
    return Trainer({member.membership, *member.fabric, clock_, logger_, member.stop,
                    click_workload(kClickTrain, kClickTest), pserver::Client::connect})
        .run();
  }
  // The membership's hooks may reach the server until its thread is joined, and longer.
  Outcome serve(Member& member) {
    member.server = std::make_unique<ServerMember>(ServerParts{
        member.membership, *member.fabric, clock_, logger_, member.stop, pserver::Server::connect});
    return member.server->run();
  }

  const SystemClock clock_;
  const Logger logger_ = Logger::none();
  const std::int64_t workers_;
  std::vector<std::unique_ptr<Member>> members_;
};

v1::EvaluationRecord run_fake(const v1::TrainingSpec& spec) {
  FakeServers servers(spec);
  ThreadJob job(static_cast<int>(spec.parameter_server().workers()), spec,
                click_workload(kClickTrain, kClickTest));
  std::vector<int> ranks;
  for (int rank = 0; rank < job.size() + spec.parameter_server().servers(); ++rank) ranks.push_back(rank);
  v1::View view = job.view(1, ranks);
  for (int rank = 0; rank < view.members_size(); ++rank) {
    if (rank >= job.size()) view.mutable_members(rank)->set_role(v1::ROLE_PS);
  }
  for (int rank = 0; rank < job.size(); ++rank) job.member(rank).connect_servers = servers.connector();
  job.send_view(view);
  job.run();
  v1::Heartbeat beat;
  job.member(0).membership->progress().collect(&beat);
  EXPECT_EQ(beat.evaluations_size(), 1);
  return beat.evaluations(0);
}

// Rows with all that is kept of them, by table and id: they come in another order from other servers.
std::map<std::pair<int, std::uint64_t>, std::vector<double>> rows_of(const v1::TrainingSpec& spec) {
  std::map<std::pair<int, std::uint64_t>, std::vector<double>> all;
  const checkpoint::CheckpointStore store(spec.checkpoint().directory(), 1);
  const auto loaded = store.load_latest();
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!loaded.ok()) return all;
  const auto reader = TablePartsReader::open(store, *loaded, table_specs(spec));
  EXPECT_TRUE(reader.ok()) << reader.status();
  pserver::sparse::SavedRows rows;
  while (reader.ok()) {
    const auto table = (*reader)->next(rows);
    EXPECT_TRUE(table.ok()) << table.status();
    if (!table.ok() || rows.size() == 0) break;
    const std::size_t floats = rows.floats.size() / rows.size();
    for (std::size_t k = 0; k < rows.size(); ++k) {
      std::vector<double>& row = all[{*table, rows.ids[k]}];
      row = {static_cast<double>(rows.last[k]), static_cast<double>(rows.uses[k]),
             static_cast<double>(rows.steps[k])};
      for (std::size_t i = 0; i < floats; ++i) row.push_back(rows.floats[k * floats + i]);
    }
  }
  return all;
}

class TableServers : public ::testing::TestWithParam<v1::ExchangeSpec::Transport> {};

TEST_P(TableServers, MakeOfATrainingWhatTheTestsServersMakeOfIt) {
  for (const int servers : {1, 3}) {
    const TemporaryFolder real_folder, fake_folder;
    v1::TrainingSpec spec = click_spec(20, 32, 2, servers);
    spec.mutable_parameter_server()->set_transport(GetParam());
    spec.mutable_checkpoint()->set_every_steps(7);
    spec.mutable_checkpoint()->set_directory(fake_folder.path());
    const v1::EvaluationRecord expected = run_fake(spec);
    const auto expected_rows = rows_of(spec);
    EXPECT_EQ(expected_rows.size(), 39u + 15u);

    spec.mutable_checkpoint()->set_directory(real_folder.path());
    RealJob job(spec);
    job.run_to_the_end();
    const v1::Heartbeat beat = job.chiefs_heartbeat();
    ASSERT_EQ(beat.evaluations_size(), 1);
    EXPECT_EQ(beat.evaluations(0).step(), 20);
    EXPECT_EQ(beat.evaluations(0).loss(), expected.loss());
    EXPECT_EQ(beat.evaluations(0).auc(), expected.auc());
    EXPECT_EQ(rows_of(spec), expected_rows) << servers << " servers";
  }
}

// A checkpoint of three servers goes on with two, and ends where an unbroken training does.
TEST_P(TableServers, GoOnFromACheckpointOfOthers) {
  const TemporaryFolder folder, unbroken_folder;
  v1::TrainingSpec spec = click_spec(24, 32, 2, 2);
  spec.mutable_parameter_server()->set_transport(GetParam());
  spec.mutable_checkpoint()->set_every_steps(12);
  spec.mutable_checkpoint()->set_directory(unbroken_folder.path());
  const v1::EvaluationRecord expected = run_fake(spec);
  const auto expected_rows = rows_of(spec);

  spec.mutable_checkpoint()->set_directory(folder.path());
  spec.mutable_parameter_server()->set_servers(3);
  spec.set_steps(11);
  RealJob(spec).run_to_the_end();
  spec.mutable_parameter_server()->set_servers(2);
  spec.set_steps(24);
  spec.mutable_checkpoint()->set_resume(true);
  RealJob job(spec);
  job.run_to_the_end();
  EXPECT_EQ(job.chiefs_heartbeat().evaluations(0).auc(), expected.auc());
  const auto rows = rows_of(spec);
  ASSERT_EQ(rows.size(), expected_rows.size());
  for (const auto& [id, row] : rows) {
    const std::vector<double>& other = expected_rows.at(id);
    EXPECT_EQ(std::vector(row.begin() + 1, row.end()), std::vector(other.begin() + 1, other.end()))
        << "row " << id.second;
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, TableServers,
                         ::testing::Values(v1::ExchangeSpec::SHARED_MEMORY, v1::ExchangeSpec::TCP));

}  // namespace
}  // namespace paceline::trainer
