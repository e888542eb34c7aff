#pragma once

// Worker 1 of a world, spoken for by the test, frame by frame.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <span>
#include <vector>

#include "runtime/pserver/frame.h"
#include "runtime/pserver/messages.h"
#include "runtime/pserver/row_messages.h"
#include "servers_world.h"

namespace paceline::pserver::testing {

class Stranger {
 public:
  // Joins the first server.
  Stranger(ServersWorld& world, const WorldSpec& spec) : socket_(world.stranger(1)[0].sockets[0].get()) {
    Buffer message;
    encode(JoinMessage{spec.elements, spec.slice_bytes, spec.medium == Medium::kSharedMemory, 0, 0,
                       fingerprint(spec.tables)},
           message);
    send({.kind = FrameKind::kJoin}, message);
  }
  void send(FrameHeader header, Bytes payload) {
    header.generation = Generation{3};
    header.rank = header.rank < 0 ? 1 : header.rank;
    header.length = payload.size();
    Buffer bytes(kFrameBytes);
    encode(header, std::span<std::byte, kFrameBytes>(bytes.data(), kFrameBytes));
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    ASSERT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void announce(FrameKind kind, const RowsMessage& parts) {
    Buffer message;
    encode(parts, message);
    send({.kind = kind}, message);
  }
  void commit(Unit unit) {
    Buffer message;
    encode(CommitMessage(), message);
    send({.kind = FrameKind::kCommit, .number = unit}, message);
  }
  // What is pushed before its turn belongs to no unit: with the turn it is forgotten. Returns the turn's
  // unit.
  Unit wait_for_turn() {
    TurnResult turn;
    read_turn(turn);
    return turn.unit;
  }
  // UNIX sockets: what is sent to it from here on fails, but nothing wakes the sender before.
  void hear_nothing_more() { ASSERT_EQ(::shutdown(socket_, SHUT_RD), 0); }
  template <typename Value>
  void values(FrameKind kind, const std::vector<Value>& values) {
    send({.kind = kind}, std::as_bytes(std::span(values)));
  }

 private:
  void read_turn(TurnResult& turn) {
    FrameKind kind = FrameKind::kJoin;
    while (kind != FrameKind::kTurn) {
      std::array<std::byte, kFrameBytes> head{};
      read(head);
      const auto header = decode_frame(head);
      ASSERT_TRUE(header.ok()) << header.status();
      Buffer payload(header->length);
      read(payload);
      kind = header->kind;
      if (kind == FrameKind::kTurn) {
        ASSERT_TRUE(decode(payload, turn).ok());
      }
    }
  }
  void read(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      pollfd readable{.fd = socket_, .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&readable, 1, 60'000), 1) << "no turn came";
      const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
      ASSERT_GT(got, 0);
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
  }

  const int socket_;
};

}  // namespace paceline::pserver::testing
