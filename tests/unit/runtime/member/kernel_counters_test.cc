#include "runtime/member/kernel_counters.h"

#include <gtest/gtest.h>

namespace paceline::member {
namespace {

TEST(KernelCounters, TextsOfTheKernelAreRead) {
  KernelCounters counters;
  add_schedstat("2000000000 500000000 12\n", counters);
  add_schedstat("1000000000 0 3\n", counters);
  take_stat("2711 (a (b) c) R 1 2 3 4 5 6 7 8 77 9 10\n", counters);
  take_io("rchar: 6976\nwchar: 0\nread_bytes: 4096\nwrite_bytes: 1\n", counters);
  take_snmp("Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm OutSegs RetransSegs InErrs\nTcp: 1 1000 25 0\n",
            counters);
  EXPECT_DOUBLE_EQ(counters.ran.value(), 3);
  EXPECT_DOUBLE_EQ(counters.delayed.value(), 0.5);
  EXPECT_EQ(counters.major_faults, 77);
  EXPECT_EQ(counters.read_bytes, 4096);
  EXPECT_EQ(counters.segments_sent, 1000);
  EXPECT_EQ(counters.segments_sent_again, 25);
  EXPECT_DOUBLE_EQ(
      pressure_of("some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 total=7\n").value(),
      1.5);
}

TEST(KernelCounters, TextThatIsNoneSetsNothing) {
  for (const char* text :
       {"", "\n", "x", ")", "2 (a", "Tcp: OutSegs\n", "Tcp: OutSegs\nTcp: x\n", "some total=", "some x"}) {
    SCOPED_TRACE(text);
    KernelCounters counters;
    add_schedstat(text, counters);
    take_stat(text, counters);
    take_io(text, counters);
    take_snmp(text, counters);
    EXPECT_FALSE(counters.ran || counters.major_faults || counters.read_bytes || counters.segments_sent);
    EXPECT_FALSE(pressure_of(text));
  }
}

TEST(KernelCounters, RatesAreOfTheTimeBetween) {
  const KernelCounters before{.ran = 10,
                              .delayed = 1,
                              .throttled = 0.5,
                              .cpu_pressure = 3,
                              .major_faults = 7,
                              .read_bytes = 100,
                              .segments_sent = 1000,
                              .segments_sent_again = 10};
  const KernelCounters after{.ran = 13,
                             .delayed = 2,
                             .throttled = 1.5,
                             .cpu_pressure = 4,
                             .major_faults = 27,
                             .read_bytes = 4100,
                             .segments_sent = 1200,
                             .segments_sent_again = 20};
  const KernelTelemetry rates = rates_between(before, after, 2);
  EXPECT_DOUBLE_EQ(rates.cpu.value(), 1.5);
  EXPECT_DOUBLE_EQ(rates.run_delay.value(), 0.25);
  EXPECT_DOUBLE_EQ(rates.throttled.value(), 0.5);
  EXPECT_DOUBLE_EQ(rates.cpu_pressure.value(), 0.5);
  EXPECT_FALSE(rates.memory_pressure);
  EXPECT_DOUBLE_EQ(rates.major_faults.value(), 10);
  EXPECT_DOUBLE_EQ(rates.read_bytes.value(), 2000);
  EXPECT_DOUBLE_EQ(rates.retransmits.value(), 0.05);
}

TEST(KernelCounters, CountThatWentBackSaysNothing) {
  const KernelTelemetry rates = rates_between({.ran = 10, .delayed = 1}, {.ran = 9, .delayed = 2}, 1);
  EXPECT_FALSE(rates.cpu);
  EXPECT_FALSE(rates.run_delay);
}

}  // namespace
}  // namespace paceline::member
