package dev.pglock.store;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Maps a full lock name to its 64-bit advisory key. A mapping that changes is a double run in a rolling deploy: the ones
 * here are frozen by tests.
 */
@FunctionalInterface
public interface KeyDerivation {

    /** The first 8 bytes, big-endian, of SHA-256 over the name in UTF-8. Agrees with gokit's {@code lock.New}. */
    KeyDerivation SHA256 = fullName -> {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(fullName.getBytes(StandardCharsets.UTF_8));
            return ByteBuffer.wrap(digest).getLong();
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("Every Java platform has SHA-256", e);
        }
    };

    /** HKDF-SHA256 as Rust's SQLx does it, 8 bytes little-endian. Agrees with {@code PgAdvisoryLock::new}. */
    KeyDerivation SQLX = fullName -> {
        byte[] pseudoRandomKey = hmac(new byte[32], fullName.getBytes(StandardCharsets.UTF_8));
        byte[] info = "SQLx (Rust) Postgres advisory lock".getBytes(StandardCharsets.UTF_8);
        byte[] expanded = hmac(
                pseudoRandomKey,
                ByteBuffer.allocate(info.length + 1).put(info).put((byte) 1).array());
        return ByteBuffer.wrap(expanded).order(ByteOrder.LITTLE_ENDIAN).getLong();
    };

    private static byte[] hmac(byte[] key, byte[] message) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            return mac.doFinal(message);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("Every Java platform has HmacSHA256", e);
        }
    }

    /**
     * Derives the key.
     *
     * @param fullName namespace, colon and name; the name alone when the namespace is empty
     * @return the key
     */
    long key(String fullName);

    /**
     * Derives the key of a name in a namespace.
     *
     * @param namespace the namespace, may be empty
     * @param name the lock's name
     * @return the key
     */
    default long key(String namespace, String name) {
        return key(namespace.isEmpty() ? name : namespace + ":" + name);
    }
}
