//! Reference identifiers: how a server names the one that it follows (RFC 5905, section 7.3).

use core::net::IpAddr;

/// The reference identifier of a server with this address: the address itself, or the first four octets of the MD5
/// digest of an IPv6 one.
pub fn reference_of(ip: IpAddr) -> u32 {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.to_bits(),
        IpAddr::V6(ip) => md5_first_word(ip.octets()),
    }
}

/// The constants of MD5 (RFC 1321, section 3.4): the whole part of 2^32 abs(sin(n)), for n from 1 to 64.
#[rustfmt::skip]
const SINES: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];

/// The first four octets of the MD5 digest (RFC 1321) of 16 octets, which make one block. It names, and protects
/// nothing.
fn md5_first_word(octets: [u8; 16]) -> u32 {
    const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let mut block = [0_u32; 16];
    for (word, bytes) in block.iter_mut().zip(octets.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    (block[4], block[14]) = (0x80, 128);
    let start = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let [mut a, mut b, mut c, mut d] = start;
    for (step, sine) in SINES.into_iter().enumerate() {
        let (mixed, place) = match step / 16 {
            0 => (b & c | !b & d, step),
            1 => (d & b | !d & c, 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        let sum = a.wrapping_add(mixed).wrapping_add(sine).wrapping_add(block[place % 16]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4])));
    }
    start[0].wrapping_add(a).swap_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1321, appendix A.5, has no text of 16 octets; these are md5sum's.
    #[test]
    fn ipv6_servers_are_named_by_a_digest() {
        assert_eq!(md5_first_word([0; 16]), 0x4ae7_1336);
        assert_eq!(md5_first_word(*b"abcdefghijklmnop"), 0x1d64_dce2);
    }

    #[test]
    fn ipv4_servers_are_named_by_their_address() {
        for text in ["192.0.2.1", "::ffff:192.0.2.1"] {
            assert_eq!(reference_of(text.parse().expect("an address")), 0xc000_0201);
        }
        assert_eq!(reference_of(core::net::Ipv6Addr::UNSPECIFIED.into()), 0x4ae7_1336);
    }
}
