#include "runtime/trainer/view_group.h"

#include <algorithm>
#include <array>

#include "base/fnv1a.h"
#include "base/ids.h"
#include "base/status.h"

namespace paceline::trainer {

namespace {

std::string person_name(const v1::ViewMember& member) {
  return str_cat(role_name(static_cast<Role>(member.role())), "-", member.index());
}

// A view of the same generation, but of other members, has another key. There may be one: where a controller
// forms a view and is gone before anybody else has heard of that, the next one gives its number out again.
void bind_to_members(const v1::View& view, std::array<std::uint8_t, 32>& key) {
  Fnv1a hash;
  for (const v1::ViewMember& member : view.members()) hash.add(str_cat(member.member_id(), "\n"));
  for (std::size_t i = 0; i < sizeof(std::uint64_t); ++i)
    key[i] ^= static_cast<std::uint8_t>(hash.value() >> (8 * i));
}

}  // namespace

absl::StatusOr<collective::Group> group_of(const v1::View& view, const std::string& member_id,
                                           const v1::Welcome& welcome) {
  collective::Group group;
  group.generation = Generation{view.generation()};
  group.rank = -1;
  for (const v1::ViewMember& member : view.members()) {
    if (member.member_id() == member_id) group.rank = static_cast<int>(group.members.size());
    collective::Address address{member.host_id(), member.address().local_socket(), {}};
    address.tcp.assign(member.address().tcp().begin(), member.address().tcp().end());
    group.members.push_back({person_name(member), std::move(address)});
  }
  if (group.rank < 0) {
    return absl::InvalidArgumentError(
        str_cat("view ", view.generation(), " lacks this member (", member_id, ")"));
  }
  if (welcome.link_key().size() != group.key.size()) {
    return absl::InvalidArgumentError(
        str_cat("the coordinator's link key has ", welcome.link_key().size(), " bytes instead of 32"));
  }
  std::copy(welcome.link_key().begin(), welcome.link_key().end(), group.key.begin());
  bind_to_members(view, group.key);
  const v1::TrainingSpec& training = welcome.training();
  const v1::ExchangeSpec& exchange = training.exchange();
  const auto transport =
      training.has_parameter_server() ? training.parameter_server().transport() : exchange.transport();
  group.transport = static_cast<collective::TransportKind>(transport);
  group.encrypted = training.encrypts_links();
  group.sockets_per_peer = static_cast<int>(exchange.sockets_per_peer());
  return group;
}

bool is_in(const v1::View& view, const std::string& member_id) {
  return std::ranges::any_of(view.members(),
                             [&](const v1::ViewMember& each) { return each.member_id() == member_id; });
}

std::vector<double> shares_of(const v1::View& view) {
  std::vector<double> shares;
  for (const v1::ViewMember& member : view.members()) shares.push_back(member.share());
  return shares;
}

}  // namespace paceline::trainer
