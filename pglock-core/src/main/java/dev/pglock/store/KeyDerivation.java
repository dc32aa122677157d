package dev.pglock.store;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

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
