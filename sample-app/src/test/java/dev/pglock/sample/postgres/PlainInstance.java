package dev.pglock.sample.postgres;

import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;

/** An instance of the sample reduced to its share in the server: joins, says so, and stays until it is told to stop. */
final class PlainInstance {

    private PlainInstance() {}

    public static void main(String[] args) throws InterruptedException {
        SharedPostgres postgres = SharedPostgres.join(Path.of(args[0]));
        Runtime.getRuntime().addShutdownHook(new Thread(postgres::close));
        System.out.println(Instance.JOINED + postgres.url());
        new CountDownLatch(1).await();
    }
}
